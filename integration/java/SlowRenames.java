package integration;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.DelegateToFileSystem;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.Path;

/**
 * The local file system with some milliseconds between the check that a rename's target is not
 * there and the rename: stock Delta's window, wider. Set it as `fs.AbstractFileSystem.file.impl`.
 * Both are in `FileSystem.rename` with options, which calls the one without.
 */
public final class SlowRenames extends DelegateToFileSystem {
  public static final String MILLIS = "integration.rename.millis";

  public SlowRenames(URI uri, Configuration conf) throws IOException, URISyntaxException {
    super(uri, new Local(conf.getLong(MILLIS, 0)), conf, "file", false);
  }

  @Override
  public int getUriDefaultPort() {
    return -1;
  }

  private static final class Local extends RawLocalFileSystem {
    private final long millis;

    Local(long millis) {
      this.millis = millis;
    }

    @Override
    public boolean rename(Path from, Path to) throws IOException {
      try {
        Thread.sleep(millis);
      } catch (InterruptedException error) {
        throw new IOException(error);
      }
      return super.rename(from, to);
    }
  }
}
