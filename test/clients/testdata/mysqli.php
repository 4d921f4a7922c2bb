<?php
// PHP's mysqli: mysqli.php HOST PORT USER PASSWORD SCHEMA
[, $host, $port, $user, $password, $schema] = $argv;
ini_set('memory_limit', '512M');
mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
$login = getenv('LOGIN');

function step(string $name, $value): void
{
    array_walk_recursive($value, function (&$v) { $v = is_null($v) ? null : (preg_match('//u', $v) ? (string) $v : bin2hex($v)); });
    echo json_encode(['step' => $name, 'value' => $value], JSON_THROW_ON_ERROR), "\n";
}

function connect(string $password): mysqli
{
    global $host, $port, $user, $schema, $login;
    $c = mysqli_init();
    $c->options(MYSQLI_OPT_LOCAL_INFILE, true);
    $flags = ['tls' => MYSQLI_CLIENT_SSL | MYSQLI_CLIENT_SSL_DONT_VERIFY_SERVER_CERT, 'compress' => MYSQLI_CLIENT_COMPRESS][$login] ?? 0;
    $c->real_connect($host, $user, $password, $schema, (int) $port, null, $flags);
    $c->set_charset('utf8mb4');
    return $c;
}

function refused(callable $f): array
{
    try {
        $f();
    } catch (mysqli_sql_exception $e) {
        return [$e->getCode(), $e->getSqlState(), $e->getMessage()];
    }
    return ['no error', null, null];
}

step('client', ['mysqli ' . phpversion('mysqli')]);
$c = connect($password);
step('connect', [$c->server_info, $c->server_version, $c->protocol_version]);
$rows = fn (string $sql) => $c->query($sql)->fetch_all();
step('session', $rows(getenv('SESSION')));

$r = $c->query('SELECT * FROM types ORDER BY id');
step('types', [array_map(fn ($f) => [$f->name, $f->type, $f->flags, $f->length, $f->decimals, $f->charsetnr, $f->table], $r->fetch_fields()), $r->fetch_all()]);
$c->query('UPDATE types SET i = i + 1 WHERE id = 1');
step('text', [$c->affected_rows, $c->info, $rows('SELECT i FROM types'), $rows("SELECT 'it''s', 'größe 🌊'")]);

$s = $c->prepare('SELECT ? + 1, ?, HEX(?), ? IS NULL');
[$n, $t, $b, $null] = [41, 'größe 🌊', "\x00\xff'", null];
$s->bind_param('issi', $n, $t, $b, $null);
$s->execute();
$first = $s->get_result()->fetch_all();
[$n, $t, $b, $null] = [-1, '', '', 0];
$s->execute();
$second = $s->get_result()->fetch_all();
$s->close();
$s = $c->prepare('SELECT * FROM types ORDER BY id'); // the binary form of every type
$s->execute();
$types = $s->get_result()->fetch_all();
$s->attr_set(MYSQLI_STMT_ATTR_CURSOR_TYPE, MYSQLI_CURSOR_TYPE_READ_ONLY); // which fetches row by row
$s->execute();
$s->bind_result($id, $i, ...array_fill(0, $s->field_count - 2, null));
$fetched = [];
while ($s->fetch()) {
    $fetched[] = [$id, $i];
}
step('prepared', [$first, $second, $types, $fetched]);
$s->close();

$c->query("INSERT INTO photos (title) VALUES ('sea')");
$ids = [$c->insert_id];
$s = $c->prepare('INSERT INTO photos (title) VALUES (?)');
$title = 'hill';
$s->bind_param('s', $title);
$s->execute();
$ids[] = $s->insert_id;
$c->query("INSERT INTO photos (title) VALUES ('a'), ('b'), ('c')");
$ids[] = $c->insert_id;
step('insert id', $ids);

$count = fn () => $rows('SELECT COUNT(*) FROM photos')[0][0];
$counts = [$count()];
$c->begin_transaction();
$title = 'gone';
$s->execute();
$c->rollback();
$counts[] = $count();
$c->begin_transaction();
$title = 'kept';
$s->execute();
$c->commit();
$counts[] = $count();
step('transaction', $counts);

$size = (int) getenv('BIG');
$big = substr(str_repeat("0123456789abcde\x00", intdiv($size, 16) + 1), 0, $size);
$s = $c->prepare('INSERT INTO big VALUES (1, ?)');
$null = null;
$s->bind_param('b', $null);
foreach (str_split($big, 1 << 20) as $piece) {
    $s->send_long_data(0, $piece);
}
$s->execute();
[$there] = $rows('SELECT LENGTH(data), SHA2(data, 256) FROM big');
$back = $rows('SELECT data FROM big')[0][0];
step('big', [...$there, strlen($back), hash('sha256', $back)]);

step('error', array_map(fn ($sql) => refused(fn () => $c->query($sql)),
    ["INSERT INTO photos (title) VALUES ('sea')", 'SELECT * FROM nothing', 'SELEKT 1']));
step('after', $rows('SELECT 1'));

$results = function (string $sql) use ($c) {
    $all = [];
    $c->multi_query($sql);
    do {
        $r = $c->store_result();
        $all[] = $r ? $r->fetch_all() : [$c->affected_rows];
    } while ($c->more_results() && $c->next_result());
    return $all;
};
step('results', [$results('CALL two(7, @twice)'), $rows('SELECT @twice'), $results("SELECT 1; DO 1; SELECT 'two'")]);

$c->query("LOAD DATA LOCAL INFILE '" . getenv('INFILE') . "' INTO TABLE words");
$loaded = [$c->affected_rows, $c->info, $rows('SELECT COUNT(*), SUM(n), MIN(word) FROM words')];
$missing = refused(fn () => @$c->query("LOAD DATA LOCAL INFILE '/none/file' INTO TABLE words"));
step('infile', [$loaded, $missing[0] !== 'no error', $rows('SELECT COUNT(*) FROM words')]);

if ($sequence = getenv('SEQUENCE')) {
    $c->query("INSERT INTO keyed VALUES (NEXTVAL('$sequence'), '$login')");
    step('nextval', [$c->insert_id, $rows('SELECT LAST_INSERT_ID()')[0][0], $rows('SELECT MAX(id) FROM keyed')[0][0]]);
    $s = $c->prepare("INSERT INTO keyed VALUES (NEXTVAL('$sequence'), ?)");
    $s->bind_param('s', $login);
    $s->execute();
    step('nextval prepared', [$s->insert_id, $rows('SELECT LAST_INSERT_ID()')[0][0], $rows('SELECT MAX(id) FROM keyed')[0][0]]);
}
$c->change_user($user, $password, $schema);
step('change user', $rows('SELECT DATABASE(), @twice'));
$c->close();
step('refused', refused(fn () => @connect('wrong')));
