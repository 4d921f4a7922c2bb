package main

// importTexts say what import makes of each kind of counters, for docs/coming-from.md and "seqproxy
// help import-kinds".
var importTexts = []struct{ kind, counter, begins, cache string }{
	{"leaf", "row of `leaf_alloc`, by `biz_tag`", "`max_id`", "`step`"},
	{"tinyid", "row of `tiny_id_info`, by `biz_type`", "`max_id + 1`", "`step`"},
	{"cosid", "row of `cosid`, by `name`, namespace in front", "`last_max_id + 1`", "adaptive"},
	{"mycat", "row of `MYCAT_SEQUENCE`, by `name`", "`current_value + increment + 1`", "`increment`"},
	{"vitess", "table with the comment `vitess_sequence`, or `-table`", "`next_id`", "`cache`"},
	{"mariadb", "sequence of the schema, or `-table`", "`next_not_cached_value`", "its own"},
	{"table", "table with AUTO_INCREMENT, or `-table`", "the greatest key + 1", "adaptive"},
	{"ticket", "`-table` that counts", "a number taken there", "adaptive"},
}
