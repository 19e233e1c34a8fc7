package integration;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Paths;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/** The local file system, on which a table is dropped when a checkpoint of it begins. */
public final class Swaps extends LocalFileSystem {
  private static String table;
  private static String away;
  private static String successor;

  /** Lets the table's folder be moved away, and a successor, if there is one, take its place. */
  public static synchronized void at(String table, String away, String successor) {
    Swaps.table = table;
    Swaps.away = away;
    Swaps.successor = successor;
  }

  /** Whether a table is still to be dropped. */
  public static synchronized boolean isDue() {
    return table != null;
  }

  private static synchronized void swap(Path file) throws IOException {
    boolean isPart = file.getParent().getName().equals("_sidecars");
    if (!isDue() || !isPart && !file.getName().contains(".checkpoint.")) return;
    if (!file.toUri().getPath().startsWith(table + "/")) return;
    Files.move(Paths.get(table), Paths.get(away));
    if (successor != null) Files.move(Paths.get(successor), Paths.get(table));
    table = null;
  }

  @Override
  public FSDataOutputStream create(
      Path file,
      FsPermission permission,
      boolean overwrite,
      int bufferSize,
      short replication,
      long blockSize,
      Progressable progress)
      throws IOException {
    swap(file);
    return super.create(file, permission, overwrite, bufferSize, replication, blockSize, progress);
  }
}
