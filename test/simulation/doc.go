// Package simulation has sequence servers that are simulated: members whose tables stand in
// memory, proxies that reserve numbers from them, and coordinators that change the set of
// members. Everything runs on one thread, in an order that the test chooses, so that thousands
// of orders can be tried in a second, each the same when it is tried again.
//
// What a member or a node does in one transaction is written here once more, without SQL. Steps run
// on real servers, too, and show that both do the same: model_cases_test.go in package sequence has
// cases by name, plan_model_test.go and holder_model_test.go steps by chance, and
// cluster_model_test.go the crashes of Galera and of group replication. Where a schedule found a
// fault, a test on real servers shows it, too.
//
// Start from [World] for members, from [Group] for the nodes of a group.
package simulation
