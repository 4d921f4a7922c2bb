# Asks the proxy by DBD::mysql: asking.pl HOST PORT USER PASSWORD SCHEMA
use strict;
use warnings;
use DBI;

my ($host, $port, $user, $password, $schema) = @ARGV;
my $c = DBI->connect("DBI:mysql:database=$schema;host=$host;port=$port", $user, $password, { RaiseError => 1, PrintError => 0, mysql_enable_utf8mb4 => 1 });
print "text ", $c->selectrow_hashref('SHOW SEQPROXY VERSION')->{version}, "\n";
$c->{mysql_server_prepare} = 1;
my $s = $c->prepare('SHOW SEQPROXY VERSION');
$s->execute;
print "again ", $s->fetchrow_hashref->{version}, "\n";
$s->finish;
my $r = $c->selectrow_hashref("SHOW SEQPROXY STATUS LIKE 'drain%'");
printf "status %s %.1f\n", $r->{name}, $r->{value};
print "session ", $c->selectrow_hashref('SHOW SEQPROXY SESSIONS')->{user}, "\n";
print 'schema ', $c->selectrow_array('SELECT DATABASE()'), "\n";
$c->ping or die 'ping';
$c->disconnect;
