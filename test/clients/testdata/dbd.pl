# Perl's DBD::mysql, with statements that the server prepares: dbd.pl HOST PORT USER PASSWORD SCHEMA
use strict;
use warnings;
use utf8;
use DBI;
use DBD::mysql;
use Digest::SHA qw(sha256_hex);
use JSON::PP;

my ($host, $port, $user, $password, $schema) = @ARGV;
my $login = $ENV{LOGIN};
$| = 1;
my $json = JSON::PP->new->ascii->canonical->allow_nonref;

# plain is a value as the transcript shows it: all are strings.
sub plain {
    my ($v) = @_;
    return ref $v eq 'ARRAY' ? [map { plain($_) } @$v] : defined $v ? "$v" : undef;
}
sub step { print $json->encode({step => $_[0], value => plain($_[1])}), "\n" }

sub dial {
    my ($password) = @_;
    # Without "optional" it refuses any TLS, since its library may fall back to none.
    my $more = {tls => ';mysql_ssl=1;mysql_ssl_optional=1', compress => ';mysql_compression=1'}->{$login} // '';
    return DBI->connect("DBI:mysql:database=$schema;host=$host;port=$port;mysql_local_infile=1$more", $user, $password,
        {RaiseError => 1, PrintError => 0, mysql_server_prepare => 1, mysql_enable_utf8mb4 => 1, mysql_multi_statements => 1});
}

sub refused {
    my ($f) = @_;
    return ['no error', undef, undef] if eval { $f->(); 1 };
    return [$DBI::err, $DBI::state, $DBI::errstr];
}

step('client', "DBD::mysql $DBD::mysql::VERSION");
my $c = dial($password);
step('connect', [$c->{mysql_serverinfo}, $c->{mysql_protoinfo}]);
sub rows { return $c->selectall_arrayref(@_) }
step('session', rows($ENV{SESSION}));

my $s = $c->prepare('SELECT id, i, big, exact, d, dt, t, f, HEX(b), s, e, y, HEX(bits), j FROM types ORDER BY id');
$s->execute;
step('types', [$s->{NAME}, $s->{TYPE}, $s->{mysql_type_name}, $s->{NULLABLE}, $s->{PRECISION}, $s->fetchall_arrayref]);
step('text', [$c->do('UPDATE types SET i = i + 1 WHERE id = 1', {mysql_server_prepare => 0}), $c->{mysql_info},
    rows('SELECT i FROM types'), rows("SELECT 'it''s', 'größe 🌊'")]);

$s = $c->prepare('SELECT ? + 1, ?, HEX(?), ? IS NULL');
$s->execute(41, 'größe 🌊', "\x00'", undef);
my $first = $s->fetchall_arrayref;
$s->execute(-1, '', '', 0);
step('prepared', [$first, $s->fetchall_arrayref]);

my @ids;
$c->do("INSERT INTO photos (title) VALUES ('sea')", {mysql_server_prepare => 0});
push @ids, $c->{mysql_insertid};
$s = $c->prepare('INSERT INTO photos (title) VALUES (?)');
$s->execute('hill');
push @ids, $s->{mysql_insertid};
$c->do("INSERT INTO photos (title) VALUES ('a'), ('b'), ('c')");
push @ids, $c->{mysql_insertid};
step('insert id', \@ids);

my @counts = rows('SELECT COUNT(*) FROM photos')->[0][0];
$c->begin_work;
$s->execute('gone');
$c->rollback;
push @counts, rows('SELECT COUNT(*) FROM photos')->[0][0];
$c->begin_work;
$s->execute('kept');
$c->commit;
push @counts, rows('SELECT COUNT(*) FROM photos')->[0][0];
step('transaction', \@counts);

my $big = substr("0123456789abcde\x00" x ($ENV{BIG} / 16 + 1), 0, $ENV{BIG});
my $insert = $c->prepare('INSERT INTO big VALUES (1, ?)');
$insert->bind_param(1, $big, DBI::SQL_BLOB);
$insert->execute;
my $there = rows('SELECT LENGTH(data), SHA2(data, 256) FROM big')->[0];
my $back = rows('SELECT data FROM big', {mysql_server_prepare => 0})->[0][0];
step('big', [@$there, length $back, sha256_hex($back)]);

step('error', [map { my $sql = $_; refused(sub { $c->do($sql) }) }
    "INSERT INTO photos (title) VALUES ('sea')", 'SELECT * FROM nothing', 'SELEKT 1']);
step('after', rows('SELECT 1'));

sub results {
    my ($sql) = @_;
    my $s = $c->prepare($sql, {mysql_server_prepare => 0});
    $s->execute;
    my @all;
    do { push @all, $s->{NUM_OF_FIELDS} ? $s->fetchall_arrayref : $s->rows } while ($s->more_results);
    return \@all;
}
step('results', [results('CALL two(7, @twice)'), rows('SELECT @twice'), results("SELECT 1; SELECT 'two'")]);

my $loaded = $c->do("LOAD DATA LOCAL INFILE '$ENV{INFILE}' INTO TABLE words", {mysql_server_prepare => 0});
my $info = $c->{mysql_info};
my $missing = refused(sub { $c->do("LOAD DATA LOCAL INFILE '/none/file' INTO TABLE words", {mysql_server_prepare => 0}) });
step('infile', [$loaded, $info, rows('SELECT COUNT(*), SUM(n), MIN(word) FROM words'), $missing->[0] ne 'no error']);

if (my $sequence = $ENV{SEQUENCE}) {
    $c->do("INSERT INTO keyed VALUES (NEXTVAL('$sequence'), '$login')", {mysql_server_prepare => 0});
    step('nextval', [$c->{mysql_insertid}, map { rows($_)->[0][0] } 'SELECT LAST_INSERT_ID()', 'SELECT MAX(id) FROM keyed']);
    my $s = $c->prepare("INSERT INTO keyed VALUES (NEXTVAL('$sequence'), ?)");
    $s->execute($login);
    step('nextval prepared', [$s->{mysql_insertid}, map { rows($_)->[0][0] } 'SELECT LAST_INSERT_ID()', 'SELECT MAX(id) FROM keyed']);
}
$c->disconnect;
step('refused', refused(sub { dial('wrong') }));
