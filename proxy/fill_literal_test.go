package proxy_test

import "testing"

// A key that the text itself gives leaves no key to be filled in beside the other number.
func TestAPreparedInsertWithAKeyOfItsOwnTakesAnotherNumber(t *testing.T) {
	o := newOracle(t, bound(filledPhotos), filledTables...)
	o.fresh(t)
	c := o.Conn(t, o.Schemas[0], nil)
	prepared, err := c.PrepareContext(t.Context(), "INSERT INTO photos (id, parent, title) VALUES (5000000, NEXTVAL('photos'), ?)")
	if err != nil {
		t.Fatal(err)
	}
	defer prepared.Close()
	if _, err := prepared.ExecContext(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	if got := value(t, c, "SELECT id FROM photos WHERE parent = LAST_INSERT_ID()"); got != "5000000" {
		t.Errorf("got %s", got)
	}
}
