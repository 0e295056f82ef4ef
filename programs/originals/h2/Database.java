// Fills tables of H2 in memory, changes and queries them, several times in one process. Standard output has sums, which
// are the same in every round and under every collector; standard error has the time of the first round and of the later
// ones, since a virtual machine compiles while it runs.
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Random;

final class Database {
    private static final int CUSTOMERS = 500;

    private static void fill(Connection connection, int orders) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute("create table orders (id int primary key, customer int, amount bigint, note varchar)");
            statement.execute("create index by_customer on orders (customer)");
        }
        Random random = new Random(1992);
        try (PreparedStatement insert = connection.prepareStatement("insert into orders values (?, ?, ?, ?)")) {
            for (int id = 0; id < orders; id++) {
                insert.setInt(1, id);
                insert.setInt(2, random.nextInt(CUSTOMERS));
                insert.setLong(3, random.nextInt(10_000));
                insert.setString(4, "order " + id + " of " + random.nextInt(1000));
                insert.executeUpdate();
            }
        }
    }

    private static long round(Connection connection, int requests, int orders, boolean marked) throws SQLException {
        Random random = new Random(2022);
        long sum = 0;
        try (PreparedStatement one = connection.prepareStatement("select amount, note from orders where id = ?");
             PreparedStatement all = connection.prepareStatement(
                 "select count(*), sum(amount) from orders where customer = ?");
             PreparedStatement change = connection.prepareStatement(
                 "update orders set amount = amount + ? where id = ?")) {
            for (int number = 0; number < requests; number++) {
                int kind = random.nextInt(4), id = random.nextInt(orders), customer = random.nextInt(CUSTOMERS);
                if (marked) Requests.begun();
                switch (kind) {
                    case 0: sum += read(one, id, true); break;
                    case 1: sum += read(all, customer, false); break;
                    case 2: sum += changed(change, id, number % 7); break;
                    default: sum += report(connection, customer);
                }
                if (marked) Requests.ended(kind);
            }
        }
        return sum;
    }

    private static long read(PreparedStatement statement, int value, boolean text) throws SQLException {
        statement.setInt(1, value);
        try (ResultSet rows = statement.executeQuery()) {
            long sum = 0;
            while (rows.next()) sum += rows.getLong(1) + (text ? rows.getString(2).length() : rows.getLong(2));
            return sum;
        }
    }

    private static long changed(PreparedStatement statement, int id, int by) throws SQLException {
        statement.setInt(1, by);
        statement.setInt(2, id);
        return statement.executeUpdate();
    }

    private static long report(Connection connection, int customer) throws SQLException {
        try (Statement statement = connection.createStatement();
             ResultSet rows = statement.executeQuery("select note, amount from orders where customer between " + customer
                 + " and " + (customer + 1) + " order by amount desc, id limit 10")) {
            long sum = 0;
            while (rows.next()) sum += rows.getLong(2) + rows.getString(1).length();
            return sum;
        }
    }

    public static void main(String[] arguments) throws SQLException {
        if (arguments.length != 4) {
            System.err.println("usage: Database ORDERS REQUESTS UNMARKED-ROUNDS MARKED-ROUNDS");
            System.exit(2);
        }
        int orders = Integer.parseInt(arguments[0]), requests = Integer.parseInt(arguments[1]);
        int unmarked = Integer.parseInt(arguments[2]), rounds = unmarked + Integer.parseInt(arguments[3]);
        double first = 0, later = 0;
        long sum = 0;
        try (Connection connection = DriverManager.getConnection("jdbc:h2:mem:orders")) {
            fill(connection, orders);
            for (int round = 0; round < rounds; round++) {
                long begun = System.nanoTime();
                sum += round(connection, requests, orders, round >= unmarked);
                double ms = (System.nanoTime() - begun) / 1e6;
                if (round == 0) first = ms; else later += ms / (rounds - 1);
            }
        }
        System.out.println("orders " + orders + ", requests " + requests + ", rounds " + rounds + ", sum " + sum);
        System.err.printf("first_round_ms=%.1f later_round_ms=%.1f%n", first, later);
    }
}
