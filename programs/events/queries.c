/* SQL requests on an SQLite database in memory. Some run statements that are prepared once, some are SQL text that is
 * parsed, run and forgotten, as programs that compose their queries do. Each is marked as in heaptoll_events.h: kinds 0
 * look orders up (prepared), 1 sum a customer's orders (prepared), 2 report (text), 3 change (text).
 *
 * usage: queries REQUESTS CUSTOMERS ORDERS [SEED]
 *
 * SQLite's own cache of small blocks (lookaside) is switched off, so that it allocates every block from the manager.
 *
 * The checksum of all rows goes to standard output, the same in every run with the same arguments. */
#include <sqlite3.h>

#include "../../include/heaptoll_events.h"
#include "common.h"

const char *const program = "queries";

static sqlite3 *database;
static uint64_t sum = FNV_BEGIN;

static void wrong(const char *what) {
    int code = sqlite3_errcode(database);
    fprintf(stderr, "queries: %s: %s\n", what, sqlite3_errmsg(database));
    exit(code == SQLITE_NOMEM ? 1 : 3);
}

static sqlite3_stmt *prepared(const char *text) {
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(database, text, -1, &statement, NULL) != SQLITE_OK) wrong(text);
    return statement;
}

/* Runs a statement to its end and folds its rows into the checksum. */
static void rows_of(sqlite3_stmt *statement) {
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        int columns = sqlite3_column_count(statement);
        for (int column = 0; column < columns; column++) {
            if (sqlite3_column_type(statement, column) == SQLITE_INTEGER) {
                sum = fold_number(sum, (uint64_t)sqlite3_column_int64(statement, column));
            } else {
                const void *text = sqlite3_column_text(statement, column);
                sum = fold(sum, text != NULL ? text : "", (size_t)sqlite3_column_bytes(statement, column));
            }
        }
    }
    if (code != SQLITE_DONE) wrong(sqlite3_sql(statement));
}

static void run_prepared(sqlite3_stmt *statement, uint64_t argument) {
    if (sqlite3_bind_int64(statement, 1, (sqlite3_int64)argument) != SQLITE_OK) wrong("bind");
    rows_of(statement);
    sqlite3_reset(statement);
}

static void run_text(const char *text) {
    sqlite3_stmt *statement = prepared(text);
    rows_of(statement);
    sqlite3_finalize(statement);
}

static void fill(uint64_t customers, uint64_t orders, uint64_t *random) {
    run_text("CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT NOT NULL)");
    run_text("CREATE TABLE purchase (id INTEGER PRIMARY KEY, customer INTEGER NOT NULL REFERENCES customer, "
             "day INTEGER NOT NULL, cents INTEGER NOT NULL, note TEXT)");
    run_text("CREATE INDEX of_customer ON purchase (customer, day)");
    run_text("BEGIN");
    char name[64], city[64];
    sqlite3_stmt *customer = prepared("INSERT INTO customer VALUES (?1, ?2, ?3)");
    for (uint64_t id = 1; id <= customers; id++) {
        snprintf(name, sizeof name, "customer %llx", (unsigned long long)next_random(random));
        snprintf(city, sizeof city, "city %llu", (unsigned long long)skewed(random, 500));
        sqlite3_bind_text(customer, 2, name, -1, SQLITE_STATIC);
        sqlite3_bind_text(customer, 3, city, -1, SQLITE_STATIC);
        run_prepared(customer, id);
    }
    sqlite3_finalize(customer);
    sqlite3_stmt *order = prepared("INSERT INTO purchase VALUES (?1, ?2, ?3, ?4, ?5)");
    for (uint64_t id = 1; id <= orders; id++) {
        snprintf(name, sizeof name, "note %llx of %llu", (unsigned long long)next_random(random),
                 (unsigned long long)id);
        sqlite3_bind_int64(order, 2, (sqlite3_int64)(1 + below(random, customers)));
        sqlite3_bind_int64(order, 3, (sqlite3_int64)below(random, 3650));
        sqlite3_bind_int64(order, 4, (sqlite3_int64)below(random, 100000));
        sqlite3_bind_text(order, 5, name, -1, SQLITE_STATIC);
        run_prepared(order, id);
    }
    sqlite3_finalize(order);
    run_text("COMMIT");
}

int main(int argc, char **argv) {
    if (argc < 4 || argc > 5) {
        fprintf(stderr, "usage: queries REQUESTS CUSTOMERS ORDERS [SEED]\n");
        return 2;
    }
    uint64_t requests = number(argv[1], "REQUESTS", 1, UINT64_C(1) << 40);
    uint64_t customers = number(argv[2], "CUSTOMERS", 1, UINT64_C(1) << 30);
    uint64_t orders = number(argv[3], "ORDERS", 1, UINT64_C(1) << 30);
    uint64_t random = argc > 4 ? number(argv[4], "SEED", 1, UINT64_MAX) : 13;

    if (sqlite3_open(":memory:", &database) != SQLITE_OK) wrong("cannot open a database in memory");
    sqlite3_db_config(database, SQLITE_DBCONFIG_LOOKASIDE, NULL, 0, 0);
    fill(customers, orders, &random);
    sqlite3_stmt *look_up = prepared("SELECT purchase.day, purchase.cents, purchase.note, customer.name, customer.city "
                                     "FROM purchase JOIN customer ON customer.id = purchase.customer "
                                     "WHERE purchase.id BETWEEN ?1 AND ?1 + 15 ORDER BY purchase.id");
    sqlite3_stmt *total = prepared("SELECT count(*), sum(cents), min(day), max(note) FROM purchase WHERE customer = ?1");

    uint64_t of_kind[4] = { 0 };
    char text[256];
    for (uint64_t request = 0; request < requests; request++) {
        uint64_t coins = below(&random, 100);
        uint32_t kind = coins < 40 ? 0 : coins < 60 ? 1 : coins < 80 ? 2 : 3;
        uint64_t customer = 1 + skewed(&random, customers), order = 1 + skewed(&random, orders);
        heaptoll_event_begin();
        switch (kind) {
        case 0: run_prepared(look_up, order); break;
        case 1: run_prepared(total, customer); break;
        case 2:
            snprintf(text, sizeof text,
                     "SELECT day / 365, count(*), sum(cents) FROM purchase WHERE customer = %llu "
                     "GROUP BY day / 365 ORDER BY 1",
                     (unsigned long long)customer);
            run_text(text);
            break;
        default:
            snprintf(text, sizeof text,
                     "UPDATE purchase SET cents = cents + %llu, note = 'changed %llu' WHERE id BETWEEN %llu AND %llu",
                     (unsigned long long)(request % 7), (unsigned long long)request, (unsigned long long)order,
                     (unsigned long long)order + 3);
            run_text(text);
            break;
        }
        heaptoll_event_end(kind);
        of_kind[kind]++;
    }
    sqlite3_finalize(look_up);
    sqlite3_finalize(total);
    sqlite3_close(database);
    printf("%llu looked up, %llu summed, %llu reported, %llu changed, checksum %016llx\n",
           (unsigned long long)of_kind[0], (unsigned long long)of_kind[1], (unsigned long long)of_kind[2],
           (unsigned long long)of_kind[3], (unsigned long long)sum);
    return fflush(stdout) == 0 ? 0 : 1;
}
