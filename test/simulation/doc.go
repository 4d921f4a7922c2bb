// Package simulation simulates sequence servers: members whose tables are in memory, proxies that
// reserve numbers from them, and coordinators that change the set of members. Everything runs on
// one thread, in an order that the test chooses. So a test tries thousands of orders in a second,
// and can repeat each.
//
// The package has a second implementation, without SQL, of each transaction on a member or a
// node. Tests run the same steps on real servers and compare: model_cases_test.go in package
// sequence has cases by name, plan_model_test.go and holder_model_test.go random steps, and
// cluster_model_test.go the crashes of Galera and of group replication. Where a schedule found
// a fault, a test on real servers shows it, too.
//
// Start at [World] for members, from [Group] for the nodes of a group.
package simulation
