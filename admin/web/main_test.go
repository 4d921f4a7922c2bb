package web_test

import (
	"testing"

	"seqproxy/test/mysqltest"
)

func TestMain(m *testing.M) { mysqltest.Main(m, mysqltest.CheckLeaks()) }
