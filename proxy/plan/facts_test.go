package plan

import (
	"reflect"
	"testing"

	"seqproxy/proxy/state"
)

// TestFactsAreData: what a plan reads and returns has no function and no interface.
func TestFactsAreData(t *testing.T) {
	seen := make(map[reflect.Type]bool)
	var look func(typ reflect.Type, path string)
	look = func(typ reflect.Type, path string) {
		if seen[typ] {
			return
		}
		seen[typ] = true
		switch typ.Kind() {
		case reflect.Func, reflect.Interface, reflect.Chan, reflect.UnsafePointer:
			t.Errorf("%s is a %s", path, typ.Kind())
		case reflect.Map:
			look(typ.Key(), path+" key")
			look(typ.Elem(), path)
		case reflect.Pointer, reflect.Slice, reflect.Array:
			look(typ.Elem(), path)
		case reflect.Struct:
			for i := range typ.NumField() {
				look(typ.Field(i).Type, path+"."+typ.Field(i).Name)
			}
		}
	}
	for _, v := range []any{Facts{}, Need{}, Verdict{}, Action{}, Filling{}, Traits{}, Server{}} {
		look(reflect.TypeOf(v), reflect.TypeOf(v).Name())
	}
	if !seen[reflect.TypeOf(Binding{})] || seen[reflect.TypeOf(state.State{})] {
		t.Error("the test has seen no type")
	}
}
