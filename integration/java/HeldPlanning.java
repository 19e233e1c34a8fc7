package integration;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;

/**
 * Plans nothing, but holds the planning of a stream's batch whose logical plan is optimized: what
 * it reads of Delta tables is known then.
 */
public final class HeldPlanning extends SparkStrategy {
  private final CountDownLatch arrived = new CountDownLatch(1);
  private final CountDownLatch opened = new CountDownLatch(1);

  /** Waits so many milliseconds for a batch to come; tells whether one has. */
  public boolean awaitArrival(long millis) throws InterruptedException {
    return arrived.await(millis, TimeUnit.MILLISECONDS);
  }

  /** Lets batches pass. */
  public void open() {
    opened.countDown();
  }

  @Override
  @SuppressWarnings("unchecked")
  public Seq<SparkPlan> apply(LogicalPlan plan) {
    if (plan.isStreaming()) {
      arrived.countDown();
      try {
        opened.await();
      } catch (InterruptedException stopped) {
        Thread.currentThread().interrupt();
      }
    }
    return (Seq<SparkPlan>) (Seq<?>) Nil$.MODULE$;
  }
}
