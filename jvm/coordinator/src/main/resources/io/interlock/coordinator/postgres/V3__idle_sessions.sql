-- A session that holds the row of a table and does nothing is ended by the server.

SET ROLE interlock_admin;

-- Internal: the row of a table, locked to the end of the transaction; all null if there is none.
-- A snapshot older than the lock could miss what its last holder did: hence the isolation level.
-- Nobody else can commit to the table meanwhile: a transaction that is idle for a minute ends,
-- whatever longer time its session allows itself.
CREATE OR REPLACE FUNCTION interlock.locked(p_log_path text) RETURNS interlock.tables
LANGUAGE plpgsql SET search_path = pg_catalog, interlock, pg_temp AS $$
DECLARE
  t tables;
  longest_idle CONSTANT interval := '1 minute';
  idle CONSTANT interval := current_setting('idle_in_transaction_session_timeout')::interval;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE 'Interlock''s functions need isolation level READ COMMITTED'
      USING ERRCODE = 'active_sql_transaction';
  END IF;
  IF idle = interval '0' OR idle > longest_idle THEN
    PERFORM set_config('idle_in_transaction_session_timeout', '1min', true);
  END IF;
  SELECT * INTO t FROM tables WHERE log_path = p_log_path FOR UPDATE;
  RETURN t;
END
$$;

RESET ROLE;
