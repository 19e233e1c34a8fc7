package integration;

import java.io.IOException;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;

import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.DeltaOperations;
import org.apache.spark.sql.delta.OptimisticTransaction;
import org.apache.spark.sql.delta.actions.Action;
import scala.Option;
import scala.collection.immutable.List$;
import scala.collection.immutable.Seq;

/**
 * Commits files that are there already, one per commit: what a small append costs without the
 * query that makes its file. A file of one row with the id 7 is named `7.parquet`.
 */
public final class Appends {
  private static OptimisticTransaction held;

  private Appends() {}

  /**
   * Appends up to `count` files from the id `first` on, and begins no commit after `seconds`; one
   * line per commit goes to `told`, and `{}` when it is over.
   */
  public static void run(DeltaLog log, long first, int count, double seconds, String told)
      throws Exception {
    try (Writer lines = Files.newBufferedWriter(Paths.get(told))) {
      long end = System.nanoTime() + (long) (seconds * 1e9);
      for (long id = first; id < first + count && System.nanoTime() < end; id++) {
        long start = System.nanoTime();
        String outcome;
        try {
          Action add = add(log, id);
          start = System.nanoTime(); // what the file is costs no part of a commit
          outcome = "\"version\": " + commit(start(log), add);
        } catch (Exception error) {
          outcome = "\"error\": \"" + text(error) + "\"";
        }
        double took = (System.nanoTime() - start) / 1e9;
        lines.write("{\"id\": " + id + ", \"seconds\": " + took + ", " + outcome + "}\n");
        lines.flush();
      }
      lines.write("{}\n");
    }
  }

  /** Starts a transaction that `end` commits. */
  public static void begin(DeltaLog log) {
    held = start(log);
  }

  /** Commits the transaction of `begin`; returns the seconds that it took. */
  public static double end(long id) throws IOException {
    Action add = add(held.deltaLog(), id);
    long start = System.nanoTime();
    commit(held, add);
    return (System.nanoTime() - start) / 1e9;
  }

  private static String text(Exception error) {
    String text = (error.getClass().getName() + ": " + error.getMessage()).lines().findFirst().get();
    return text.replace('\\', '/').replace('"', '\'');
  }

  private static OptimisticTransaction start(DeltaLog log) {
    return log.startTransaction(Option.empty(), Option.empty());
  }

  private static long commit(OptimisticTransaction transaction, Action add) {
    return transaction.commit((Seq<Action>) (Object) List$.MODULE$.empty().$colon$colon(add), write());
  }

  private static DeltaOperations.Operation write() {
    Option<?> none = Option.empty();
    return new DeltaOperations.Write(
        SaveMode.Append, Option.apply(List$.MODULE$.empty()), (Option<String>) none,
        (Option<String>) none, (Option<Object>) none, (Option<Object>) none,
        (Option<Object>) none, (Option<String>) none, (Option) none);
  }

  private static Action add(DeltaLog log, long id) throws IOException {
    Path path = new Path(log.dataPath(), id + ".parquet");
    FileStatus file = path.getFileSystem(log.newDeltaHadoopConf()).getFileStatus(path);
    String stats =
        String.format(
            "{\"numRecords\":1,\"minValues\":{\"id\":%1$d},\"maxValues\":{\"id\":%1$d},"
                + "\"nullCount\":{\"id\":0}}", id);
    String add = String.format(
        "{\"add\":{\"path\":\"%s\",\"partitionValues\":{},\"size\":%d,\"modificationTime\":%d,"
            + "\"dataChange\":true,\"stats\":\"%s\"}}",
        path.getName(), file.getLen(), file.getModificationTime(),
        stats.replace("\"", "\\\""));
    return Action.fromJson(add);
  }
}
