-- Reads a JSON document of orders with a parser of its own, totals it by customer, region and article, writes it out
-- again sorted by value and checks that it reads back. Prints integers only.

local path, rounds = arg[1], tonumber(arg[2])
local file = assert(io.open(path, "rb"))
local source = file:read("a")
file:close()

local escapes = { n = "\n", t = "\t", r = "\r", b = "\b", f = "\f", ['"'] = '"', ["\\"] = "\\", ["/"] = "/" }
local null = setmetatable({}, { __name = "null" })

local value -- parser of any value: (text, position) -> value, next position

local function skip(text, at)
    return text:match("^[ \t\r\n]*()", at)
end

local function string_at(text, at)
    local parts, start = {}, at + 1
    while true do
        local stop, char = text:match('()(["\\])', start)
        parts[#parts + 1] = text:sub(start, stop - 1)
        if char == '"' then
            return table.concat(parts), stop + 1
        end
        local escape = text:sub(stop + 1, stop + 1)
        if escape == "u" then
            parts[#parts + 1] = utf8.char(tonumber(text:sub(stop + 2, stop + 5), 16))
            start = stop + 6
        else
            parts[#parts + 1] = escapes[escape]
            start = stop + 2
        end
    end
end

local function list_at(text, at)
    local list = {}
    at = skip(text, at + 1)
    if text:byte(at) == 93 then
        return list, at + 1
    end
    while true do
        list[#list + 1], at = value(text, at)
        at = skip(text, at)
        if text:byte(at) == 93 then
            return list, at + 1
        end
        at = skip(text, at + 1)
    end
end

local function object_at(text, at)
    local object = {}
    at = skip(text, at + 1)
    if text:byte(at) == 125 then
        return object, at + 1
    end
    while true do
        local key
        key, at = string_at(text, at)
        at = skip(text, text:match("^[ \t\r\n]*:()", at))
        object[key], at = value(text, at)
        at = skip(text, at)
        if text:byte(at) == 125 then
            return object, at + 1
        end
        at = skip(text, at + 1)
    end
end

local words = { t = { true, 4 }, f = { false, 5 }, n = { null, 4 } }

function value(text, at)
    local char = text:sub(at, at)
    if char == "{" then
        return object_at(text, at)
    elseif char == "[" then
        return list_at(text, at)
    elseif char == '"' then
        return string_at(text, at)
    elseif words[char] then
        return words[char][1], at + words[char][2]
    end
    local number, after = text:match("^(-?%d+)()", at)
    return math.tointeger(number), after
end

local function write(item, out)
    if item == null then
        out[#out + 1] = "null"
    elseif type(item) == "string" then
        out[#out + 1] = '"' .. item:gsub('[\\"\n]', { ["\\"] = "\\\\", ['"'] = '\\"', ["\n"] = "\\n" }) .. '"'
    elseif type(item) ~= "table" then
        out[#out + 1] = tostring(item)
    elseif #item > 0 then
        for at, member in ipairs(item) do
            out[#out + 1] = at == 1 and "[" or ","
            write(member, out)
        end
        out[#out + 1] = "]"
    else
        local keys = {}
        for key in pairs(item) do
            keys[#keys + 1] = key
        end
        table.sort(keys)
        out[#out + 1] = "{"
        for at, key in ipairs(keys) do
            out[#out + 1] = (at > 1 and "," or "") .. '"' .. key .. '":'
            write(item[key], out)
        end
        out[#out + 1] = "}"
    end
end

local function add(totals, key, cents)
    local total = totals[key] or { count = 0, cents = 0 }
    total.count = total.count + 1
    total.cents = total.cents + cents
    totals[key] = total
end

local function count(totals)
    local number = 0
    for _ in pairs(totals) do
        number = number + 1
    end
    return number
end

for round = 1, rounds do
    local document = value(source, skip(source, 1))
    local customers, regions, articles = {}, {}, {}
    for _, order in ipairs(document.orders) do
        order.cents = 0
        for _, item in ipairs(order.items) do
            order.cents = order.cents + item.quantity * item.cents
            for _, tag in ipairs(item.tags) do
                add(articles, item.sku .. "/" .. tag, item.cents)
            end
        end
        add(customers, order.customer.name, order.cents)
        add(regions, order.customer.region, order.cents)
    end
    table.sort(document.orders, function(a, b)
        return a.cents > b.cents or a.cents == b.cents and a.id < b.id
    end)
    local out = {}
    write(document, out)
    local text = table.concat(out)
    local again = value(text, 1)
    assert(#again.orders == document.count and again.orders[1].id == document.orders[1].id)
    local sum = round
    for at = 1, #text, 97 do
        sum = (sum * 31 + text:byte(at)) % 1000000007
    end
    source = text
    print(#document.orders, count(customers), count(regions), count(articles), #text, sum)
end
