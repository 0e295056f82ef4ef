// Makes orders, indexes them, totals and sorts them, writes and parses them as JSON. ES5, for every engine.
// The rounds are a global variable, or the first argument.
var show = typeof print === "function" ? print : function (text) { console.log(text); };
var count = typeof rounds !== "undefined" ? rounds : +(typeof scriptArgs !== "undefined" ? scriptArgs[0] : process.argv[2]);
var state = 12345;

function below(bound) {
    state = (state * 48271) % 2147483647;
    return state % bound;
}

function order(id) {
    var items = [];
    for (var at = below(6) + 1; at > 0; at--)
        items.push({ sku: "s" + below(500), quantity: below(9) + 1, cents: below(99999) });
    return { id: id, customer: "c" + below(700), note: id % 3 ? "n" + below(9000) : null, items: items };
}

function total(order) {
    return order.items.reduce(function (sum, item) { return sum + item.quantity * item.cents; }, 0);
}

var line = "";
for (var round = 0; round < count; round++) {
    var orders = [];
    for (var id = 0; id < 2000; id++) orders.push(order(id));
    var parsed = JSON.parse(JSON.stringify(orders));
    var customers = {};
    parsed.forEach(function (each) {
        (customers[each.customer] = customers[each.customer] || []).push(each);
    });
    var ranked = Object.keys(customers).map(function (name) {
        return { name: name, cents: customers[name].reduce(function (sum, each) { return sum + total(each); }, 0) };
    });
    ranked.sort(function (a, b) { return b.cents - a.cents || (a.name < b.name ? -1 : 1); });
    line = round + " " + ranked.slice(0, 5).map(function (each) { return each.name + "=" + each.cents; }).join(" ");
    show(line);
}
