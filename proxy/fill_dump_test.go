package proxy_test

import (
	"testing"

	"seqproxy/protocol"
	"seqproxy/proxy"
)

// A dump sets character_set_client from a variable behind each CREATE TABLE. Its INSERTs name no
// columns, and are ASCII.
func TestADumpOfATableWhoseColumnsAreNotASCII(t *testing.T) {
	o := newOracle(t, bare(bound(filledPhotos)))
	o.fresh(t)
	p := o.pairOfSchemas(t, allFraming&^protocol.QueryAttributes)
	for _, sql := range []string{
		"/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */",
		"/*!40101 SET @OLD_CHARACTER_SET_RESULTS=@@CHARACTER_SET_RESULTS */",
		"/*!40101 SET @OLD_COLLATION_CONNECTION=@@COLLATION_CONNECTION */",
		"/*!50503 SET NAMES utf8mb4 */",
		"/*!40103 SET @OLD_TIME_ZONE=@@TIME_ZONE */",
		"/*!40103 SET TIME_ZONE='+00:00' */",
		"/*!40014 SET @OLD_UNIQUE_CHECKS=@@UNIQUE_CHECKS, UNIQUE_CHECKS=0 */",
		"/*!40014 SET @OLD_FOREIGN_KEY_CHECKS=@@FOREIGN_KEY_CHECKS, FOREIGN_KEY_CHECKS=0 */",
		"/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */",
		"/*!40111 SET @OLD_SQL_NOTES=@@SQL_NOTES, SQL_NOTES=0 */",
		"DROP TABLE IF EXISTS `photos`",
		"/*!40101 SET @saved_cs_client     = @@character_set_client */",
		"/*!50503 SET character_set_client = utf8mb4 */",
		"CREATE TABLE `photos` (`id` bigint NOT NULL AUTO_INCREMENT, `größe` int DEFAULT NULL, PRIMARY KEY (`id`)) ENGINE=InnoDB AUTO_INCREMENT=3 DEFAULT CHARSET=utf8mb4",
		"/*!40101 SET character_set_client = @saved_cs_client */",
		"LOCK TABLES `photos` WRITE",
		"/*!40000 ALTER TABLE `photos` DISABLE KEYS */",
		"INSERT INTO `photos` VALUES (1,70),(2,80)",
		"INSERT INTO `photos` VALUES (5,90),(6,100)",
		"/*!40000 ALTER TABLE `photos` ENABLE KEYS */",
		"UNLOCK TABLES",
		"/*!40103 SET TIME_ZONE=@OLD_TIME_ZONE */",
		"/*!40101 SET SQL_MODE=@OLD_SQL_MODE */",
		"/*!40014 SET FOREIGN_KEY_CHECKS=@OLD_FOREIGN_KEY_CHECKS */",
		"/*!40014 SET UNIQUE_CHECKS=@OLD_UNIQUE_CHECKS */",
		"/*!40101 SET CHARACTER_SET_CLIENT=@OLD_CHARACTER_SET_CLIENT */",
		"/*!40101 SET CHARACTER_SET_RESULTS=@OLD_CHARACTER_SET_RESULTS */",
		"/*!40101 SET COLLATION_CONNECTION=@OLD_COLLATION_CONNECTION */",
		"/*!40111 SET SQL_NOTES=@OLD_SQL_NOTES */",
		"INSERT INTO photos SELECT id + 10, 110 FROM photos",
		"SELECT CONCAT_WS(0x20, id, größe) AS photo FROM photos ORDER BY id",
	} {
		p.query(sql)
	}
	o.meets(t, p)
	p.query("SET character_set_client = @saved_cs_client")
	p.query("INSERT INTO photos VALUES (NULL, 120)")
	p.query("SELECT CONCAT_WS(0x20, id, größe) AS photo FROM photos ORDER BY id")
}

// Without a question the proxy could not know in which character set a server reads the names.
func TestAColumnThatIsNotASCIIIsFilledInWhereAVariableSetsTheCharacterSet(t *testing.T) {
	o := newOracle(t, bare(bound(proxy.Binding{Table: "photos", Column: "größe", Sequence: "photos"})), "CREATE TABLE photos (größe BIGINT AUTO_INCREMENT PRIMARY KEY, n INT)")
	o.fresh(t)
	p := o.pairOfSchemas(t, allFraming&^protocol.QueryAttributes)
	for _, charset := range []string{"utf8mb4", "utf8mb3"} {
		p.query("SET @cs = '" + charset + "'")
		for _, insert := range []string{"INSERT INTO photos (n) VALUES (1)", "INSERT INTO photos VALUES (7, 1) ON DUPLICATE KEY UPDATE n = n + 1"} {
			o.meets(t, p)
			p.query("SET character_set_client = @cs")
			p.query(insert)
			p.query("SELECT CONCAT_WS(0x20, größe, n) AS photo FROM photos ORDER BY 1")
		}
	}
	p.Proxy.query("SET @cs = 'latin1'")
	p.Proxy.query("SET character_set_client = @cs")
	if err := serverError(t, p.Proxy.query("INSERT INTO photos VALUES (8, 1)")); err.Code != 1235 {
		t.Errorf("in latin1: got %v, want 1235", err)
	}
	p.Proxy.query("SET NAMES utf8mb4")
	// The proxy's question would be what the statement reads.
	p.Proxy.query("SET @cs = 'utf8mb4'")
	p.Proxy.query("SET character_set_client = @cs")
	if err := serverError(t, p.Proxy.query("INSERT INTO photos VALUES (8, ROW_COUNT())")); err.Code != 1235 {
		t.Errorf("beside ROW_COUNT(): got %v, want 1235", err)
	}
}
