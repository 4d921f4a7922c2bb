// A pool of MariaDB Connector/J whose server goes away: Lost.java HOST PORT USER PASSWORD SCHEMA
import java.sql.*;
import org.mariadb.jdbc.MariaDbPoolDataSource;

public class Lost {
    public static void main(String[] args) throws Exception {
        try (MariaDbPoolDataSource pool = new MariaDbPoolDataSource(
                "jdbc:mariadb://" + args[0] + ":" + args[1] + "/" + args[4] + "?maxPoolSize=2&minPoolSize=1&allowPublicKeyRetrieval=true&connectTimeout=2000")) {
            pool.setUser(args[2]);
            pool.setPassword(args[3]);
            try (Connection busy = pool.getConnection(); Statement s = busy.createStatement()) {
                s.executeQuery("SELECT SLEEP(100)");
                System.out.println("busy nothing");
            } catch (SQLException e) {
                System.out.println("busy " + e.getSQLState() + " " + (e instanceof SQLNonTransientConnectionException));
            }
            for (int i = 0; i < 600; i++) {
                try (Connection c = pool.getConnection(); Connection d = pool.getConnection();
                        Statement s = c.createStatement(); Statement u = d.createStatement()) {
                    ResultSet r = s.executeQuery("SELECT 1"), q = u.executeQuery("SELECT 2");
                    r.next();
                    q.next();
                    System.out.println("again " + (r.getInt(1) + q.getInt(1)));
                    break;
                } catch (SQLException e) {
                    Thread.sleep(100);
                }
            }
        }
    }
}
