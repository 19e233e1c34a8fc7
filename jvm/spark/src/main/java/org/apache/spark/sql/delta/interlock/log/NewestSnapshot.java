package org.apache.spark.sql.delta.interlock.log;

import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.Snapshot;

/** Written in Java, for which Delta's method is public. */
final class NewestSnapshot {
  private NewestSnapshot() {}

  /**
   * Makes a snapshot the newest one that a log has seen. The caller holds the log's snapshot lock.
   *
   * @param asOf when it was the newest one, in milliseconds
   */
  static Snapshot install(DeltaLog log, Snapshot snapshot, long asOf) {
    return log.installSnapshot(snapshot, asOf);
  }
}
