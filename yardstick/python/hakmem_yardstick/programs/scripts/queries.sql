\set first random(1, 90000)
SELECT count(DISTINCT hash) FROM (SELECT md5(aid::text) AS hash FROM pgbench_accounts
    WHERE aid BETWEEN :first AND :first + 6000 ORDER BY 1) AS sorted;
SELECT length(string_agg(md5(aid::text), ',' ORDER BY md5(abalance::text), aid))
    FROM pgbench_accounts WHERE aid BETWEEN :first AND :first + 4000;
SELECT count(*), sum(jsonb_array_length(list)) FROM (SELECT jsonb_agg(jsonb_build_object(
    'account', aid, 'branch', bid, 'text', repeat('t', aid % 50))) AS list
    FROM pgbench_accounts WHERE aid BETWEEN :first AND :first + 4000 GROUP BY aid % 97) AS grouped;
SELECT count(*) FROM pgbench_accounts a JOIN pgbench_accounts b ON a.aid = b.aid + 7
    WHERE a.aid BETWEEN :first AND :first + 5000 AND b.bid = a.bid;
