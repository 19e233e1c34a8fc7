import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;

import com.fasterxml.jackson.databind.ObjectMapper;
import io.delta.kernel.DataWriteContext;
import io.delta.kernel.Operation;
import io.delta.kernel.Scan;
import io.delta.kernel.Table;
import io.delta.kernel.Transaction;
import io.delta.kernel.data.ColumnVector;
import io.delta.kernel.data.ColumnarBatch;
import io.delta.kernel.data.FilteredColumnarBatch;
import io.delta.kernel.data.Row;
import io.delta.kernel.defaults.engine.DefaultEngine;
import io.delta.kernel.defaults.internal.data.DefaultColumnarBatch;
import io.delta.kernel.defaults.internal.data.vector.DefaultGenericVector;
import io.delta.kernel.engine.Engine;
import io.delta.kernel.engine.FileReadResult;
import io.delta.kernel.internal.InternalScanFileUtils;
import io.delta.kernel.internal.compaction.LogCompactionWriter;
import io.delta.kernel.internal.data.ScanStateRow;
import io.delta.kernel.internal.fs.Path;
import io.delta.kernel.internal.util.Utils;
import io.delta.kernel.types.IntegerType;
import io.delta.kernel.types.StringType;
import io.delta.kernel.types.StructType;
import io.delta.kernel.utils.CloseableIterable;
import io.delta.kernel.utils.CloseableIterator;
import io.delta.kernel.utils.DataFileStatus;
import org.apache.hadoop.conf.Configuration;

/**
 * Reads and appends rows (id INT, v STRING) by Delta Kernel, as `delta_kernel.py` orders.
 *
 * <p>An order is a JSON array on a line; so is its answer: the result, or class and message of what
 * was thrown.
 */
public final class DeltaKernel {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final StructType SCHEMA =
      new StructType().add("id", IntegerType.INTEGER).add("v", StringType.STRING);

  private final Engine engine = DefaultEngine.create(new Configuration());
  private Transaction begun;

  public static void main(String[] none) throws IOException {
    DeltaKernel kernel = new DeltaKernel();
    BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
    for (String order = orders.readLine(); order != null; order = orders.readLine()) {
      List<?> answer = kernel.answer(JSON.readValue(order, List.class));
      System.out.println(JSON.writeValueAsString(answer));
    }
  }

  private List<?> answer(List<?> order) {
    try {
      return List.of(followed(order));
    } catch (Exception error) {
      return List.of(error.getClass().getSimpleName(), String.valueOf(error.getMessage()));
    }
  }

  private Object followed(List<?> order) throws IOException {
    switch ((String) order.get(0)) {
      case "read":
        return read((String) order.get(1), (Integer) order.get(2));
      case "begin":
        begun = begin((String) order.get(1));
        return begun.getReadTableVersion();
      case "append":
        return append((Integer) order.get(1), (String) order.get(2));
      case "compact log":
        return compactLog((String) order.get(1), (Integer) order.get(2), (Integer) order.get(3));
      default:
        throw new IllegalArgumentException(order.toString());
    }
  }

  private List<List<?>> read(String path, int version) throws IOException {
    Table table = Table.forPath(engine, path);
    Scan scan = table.getSnapshotAsOfVersion(engine, version).getScanBuilder().build();
    List<List<?>> found = new ArrayList<>();
    try (CloseableIterator<Row> files = rows(scan.getScanFiles(engine))) {
      while (files.hasNext()) {
        readFile(scan.getScanState(engine), files.next(), found);
      }
    }
    return found;
  }

  private void readFile(Row state, Row file, List<List<?>> found) throws IOException {
    CloseableIterator<ColumnarBatch> physical =
        engine
            .getParquetHandler()
            .readParquetFiles(
                Utils.singletonCloseableIterator(InternalScanFileUtils.getAddFileStatus(file)),
                ScanStateRow.getPhysicalDataReadSchema(state),
                Optional.empty())
            .map(FileReadResult::getData);
    try (CloseableIterator<Row> live =
        rows(Scan.transformPhysicalData(engine, state, file, physical))) {
      while (live.hasNext()) {
        Row row = live.next();
        found.add(List.of(row.getInt(0), row.getString(1)));
      }
    }
  }

  private static CloseableIterator<Row> rows(CloseableIterator<FilteredColumnarBatch> batches) {
    return batches.flatMap(FilteredColumnarBatch::getRows);
  }

  private Transaction begin(String path) {
    return Table.forPath(engine, path)
        .createTransactionBuilder(engine, "tests", Operation.WRITE)
        .build(engine);
  }

  /** Commits a row in the transaction that was begun; returns the version. */
  private long append(int id, String v) throws IOException {
    Row state = begun.getTransactionState(engine);
    DataWriteContext target = Transaction.getWriteContext(engine, state, Map.of());
    CloseableIterator<FilteredColumnarBatch> physical =
        Transaction.transformLogicalData(
            engine, state, Utils.singletonCloseableIterator(batch(id, v)), Map.of());
    CloseableIterator<DataFileStatus> files =
        engine
            .getParquetHandler()
            .writeParquetFiles(target.getTargetDirectory(), physical, target.getStatisticsColumns());
    CloseableIterator<Row> actions =
        Transaction.generateAppendActions(engine, state, files, target);
    return begun.commit(engine, CloseableIterable.inMemoryIterable(actions)).getVersion();
  }

  /** Writes one file in place of several commits, as Kernel's hook does after a commit. */
  private int compactLog(String path, int first, int last) throws IOException {
    Path table = new Path(engine.getFileSystemClient().resolvePath(path));
    new LogCompactionWriter(table, new Path(table, "_delta_log"), first, last, 0)
        .writeLogCompactionFile(engine);
    return last;
  }

  private static FilteredColumnarBatch batch(int id, String v) {
    ColumnVector[] columns = {
      DefaultGenericVector.fromArray(IntegerType.INTEGER, new Object[] {id}),
      DefaultGenericVector.fromArray(StringType.STRING, new Object[] {v})
    };
    return new FilteredColumnarBatch(new DefaultColumnarBatch(1, SCHEMA, columns), Optional.empty());
  }
}
