package integration;

import java.io.IOException;
import java.util.Arrays;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;

/** The local file system, with a file that the next listing of its folder does not show. */
public final class Gaps extends LocalFileSystem {
  private static Path hidden;
  private static int listings;

  /** Hides the file from the next listings of its folder, as many as told. */
  public static synchronized void hide(String file, int times) {
    hidden = new Path(file);
    listings = times;
  }

  /** The listings that are still to come. */
  public static synchronized int left() {
    return listings;
  }

  private static synchronized FileStatus[] shown(Path folder, FileStatus[] files) {
    if (listings == 0 || !folder.toUri().getPath().equals(hidden.getParent().toUri().getPath()))
      return files;
    listings--;
    return Arrays.stream(files)
        .filter(file -> !file.getPath().getName().equals(hidden.getName()))
        .toArray(FileStatus[]::new);
  }

  @Override
  public FileStatus[] listStatus(Path folder) throws IOException {
    return shown(folder, super.listStatus(folder));
  }
}
