<?php
// The keys that PHP's mysqli and PDO tell: kinds.php mysqli|PDO HOST PORT USER PASSWORD SCHEMA STEP...
// A step has fields between tabs: its name, how the statement is run, the statement, and values.
[, $driver, $host, $port, $user, $password, $schema] = $argv;
mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);

if ($driver === 'mysqli') {
    $c = new mysqli($host, $user, $password, $schema, (int) $port);
    $run = [
        'text' => function (string $sql) use ($c) { $c->query($sql); return [$c->insert_id]; },
        'prepared' => function (string $sql, array $values) use ($c) {
            $s = $c->prepare($sql);
            $s->bind_param(str_repeat('s', count($values)), ...$values);
            $s->execute();
            return [$s->insert_id];
        },
        'rows' => fn (string $sql) => array_column($c->query($sql)->fetch_all(), 0),
    ];
    $code = fn (Exception $e) => $e->getCode();
} else {
    $c = new PDO("mysql:host=$host;port=$port;dbname=$schema", $user, $password, [PDO::ATTR_EMULATE_PREPARES => false, PDO::ATTR_STRINGIFY_FETCHES => true]);
    $run = [
        'text' => function (string $sql) use ($c) { $c->exec($sql); return [$c->lastInsertId()]; },
        'prepared' => function (string $sql, array $values) use ($c) { $c->prepare($sql)->execute($values); return [$c->lastInsertId()]; },
        'rows' => fn (string $sql) => $c->query($sql)->fetchAll(PDO::FETCH_COLUMN),
    ];
    $code = fn (Exception $e) => $e->errorInfo[1];
}

foreach (array_slice($argv, 7) as $step) {
    [$name, $how, $sql] = $values = explode("\t", $step);
    if (!isset($run[$how])) {
        continue; // no batches
    }
    try {
        $told = array_map('strval', $run[$how]($sql, array_slice($values, 3)));
    } catch (mysqli_sql_exception | PDOException $e) {
        $told = (string) $code($e);
    }
    echo json_encode(['step' => $name, 'value' => $told], JSON_THROW_ON_ERROR), "\n";
}
