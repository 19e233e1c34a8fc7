-- An answer has contents of published commits up to 16 MiB: they are in the log as well.

SET ROLE interlock_admin;

-- Internal: a table's state and its commits of the versions from p_low to p_high; of p_txn_ids
-- only, if that is given. With p_contents, all contents that are not known to be published, and of
-- the others those that come first, 16 MiB together.
CREATE OR REPLACE FUNCTION interlock.replies(
  t interlock.tables, p_status text,
  p_low bigint DEFAULT 0, p_high bigint DEFAULT -1,
  p_contents boolean DEFAULT false, p_txn_ids text[] DEFAULT NULL
) RETURNS SETOF interlock.reply
LANGUAGE sql STABLE SET search_path = pg_catalog, interlock, pg_temp AS $$
  SELECT p_status, o.id, (t).epoch, (t).sequence, (t).head, (t).published,
         c.version, c.txn_id,
         CASE WHEN p_contents AND (
           c.version > (t).published
           OR sum(octet_length(c.content)) OVER (ORDER BY c.version) <= 16777216
         ) THEN c.content END,
         c.staged_name, c.size, c.sha256
  FROM coordinator o
  LEFT JOIN commits c ON c.key = (t).key AND c.version BETWEEN p_low AND p_high
    AND (p_txn_ids IS NULL OR c.txn_id = ANY (p_txn_ids))
  ORDER BY c.version
$$;

RESET ROLE;
