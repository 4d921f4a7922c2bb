package web_test

import (
	"testing"

	"seqproxy/internal/mysqltest"
)

func TestMain(m *testing.M) { mysqltest.Main(m, mysqltest.CheckLeaks()) }
