package integration;

import io.interlock.coordinator.CommitPhase;
import io.interlock.coordinator.CommitPhaseObserver;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Paths;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FilterFileSystem;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/**
 * One fault at one point of one table's work: the first thread that comes to the point leaves a
 * marker file and then waits to be let go, or fails.
 *
 * Points are the phases of a commit, by name, and what happens to files: `create`, `close` or
 * `delete` of a `data` file, a deletion `vector` or a `checkpoint`, as `data.close`.
 */
public final class Faults {
  private static final long MOST_MILLIS = 180_000;

  private static String point;
  private static String action;
  private static String table;
  private static String marker;

  private Faults() {}

  /**
   * @param what "hold": wait until the file `marker` + ".go" is there; "io": an IOException;
   *     "runtime": another exception
   */
  public static synchronized void arm(String at, String what, String folder, String markerFile) {
    point = at;
    action = what;
    table = folder;
    marker = markerFile;
  }

  /** Puts observers where the points are; `fs.file.impl` and its like are for files. */
  public static CommitPhaseObserver phases() {
    return new Phases();
  }

  private static void reached(String at, String path) throws IOException {
    String what;
    String markerFile;
    synchronized (Faults.class) {
      if (!at.equals(point) || !path.contains(table)) return;
      point = null;
      what = action;
      markerFile = marker;
    }
    Files.createFile(Paths.get(markerFile));
    switch (what) {
      case "hold" -> hold(Paths.get(markerFile + ".go"));
      case "io" -> throw new IOException("injected at " + at);
      default -> throw new IllegalStateException("injected at " + at);
    }
  }

  private static void hold(java.nio.file.Path go) throws IOException {
    long end = System.nanoTime() + MOST_MILLIS * 1_000_000;
    try {
      while (!Files.exists(go) && System.nanoTime() < end) Thread.sleep(10);
    } catch (InterruptedException error) {
      throw new IOException(error);
    }
  }

  /** Phases of commits, whose observer declares no exception. */
  private static final class Phases implements CommitPhaseObserver {
    @Override
    public void at(CommitPhase phase, String log, long version) {
      try {
        reached(phase.name(), log);
      } catch (IOException error) {
        Phases.<RuntimeException>raise(error);
      }
    }

    @SuppressWarnings("unchecked")
    private static <T extends Throwable> void raise(Throwable error) throws T {
      throw (T) error;
    }
  }

  /** The local file system, as Delta and Spark use it through Hadoop. */
  public static final class Local extends LocalFileSystem {
    @Override
    public FSDataOutputStream create(
        Path file, FsPermission permission, boolean overwrite, int buffer, short replication,
        long block, Progressable progress) throws IOException {
      reached(kind(file) + ".create", file.toString());
      return closing(
          super.create(file, permission, overwrite, buffer, replication, block, progress), file);
    }

    @Override
    public boolean delete(Path file, boolean recursive) throws IOException {
      reached(kind(file) + ".delete", file.toString());
      return super.delete(file, recursive);
    }
  }

  public static final class S3 extends Remote {
    public S3() {
      super("org.apache.hadoop.fs.s3a.S3AFileSystem");
    }
  }

  public static final class Hdfs extends Remote {
    public Hdfs() {
      super("org.apache.hadoop.hdfs.DistributedFileSystem");
    }
  }

  /**
   * Another file system, as Delta and Spark use it through Hadoop, by the name of its class: some
   * sessions that use `Faults` have no S3A.
   */
  private abstract static class Remote extends FilterFileSystem {
    private final String name;

    Remote(String name) {
      this.name = name;
    }

    @Override
    public void initialize(URI uri, Configuration conf) throws IOException {
      try {
        fs = (FileSystem) conf.getClassByName(name).getDeclaredConstructor().newInstance();
      } catch (ReflectiveOperationException error) {
        throw new IOException(error);
      }
      fs.initialize(uri, conf);
      super.initialize(uri, conf);
    }

    @Override
    public FSDataOutputStream create(
        Path file, FsPermission permission, boolean overwrite, int buffer, short replication,
        long block, Progressable progress) throws IOException {
      reached(kind(file) + ".create", file.toString());
      return closing(
          super.create(file, permission, overwrite, buffer, replication, block, progress), file);
    }

    @Override
    public boolean delete(Path file, boolean recursive) throws IOException {
      reached(kind(file) + ".delete", file.toString());
      return super.delete(file, recursive);
    }
  }

  private static String kind(Path file) {
    String name = file.getName();
    if (name.contains(".checkpoint")) return "checkpoint";
    if (name.contains("deletion_vector")) return "vector";
    return name.endsWith(".parquet") ? "data" : "other";
  }

  private static FSDataOutputStream closing(OutputStream out, Path file) throws IOException {
    return new FSDataOutputStream(new Closing(out, file), null);
  }

  private static final class Closing extends FilterOutputStream {
    private final Path file;
    private boolean closed;

    Closing(OutputStream out, Path file) {
      super(out);
      this.file = file;
    }

    @Override
    public void write(byte[] bytes, int from, int length) throws IOException {
      out.write(bytes, from, length);
    }

    @Override
    public void close() throws IOException {
      if (closed) return;
      closed = true;
      out.close();
      reached(kind(file) + ".close", file.toString());
    }
  }
}
