package integration;

import java.util.concurrent.CountDownLatch;

import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerJobStart;

/**
 * Holds what Spark knows of its jobs, as a busy machine does: from the next job on, none is listed
 * until it is opened.
 */
public final class HeldStatus extends SparkListener {
  private final CountDownLatch opened = new CountDownLatch(1);

  public HeldStatus(SparkContext context) {
    context.listenerBus().addToStatusQueue(this);
  }

  @Override
  public void onJobStart(SparkListenerJobStart started) {
    try {
      opened.await();
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
    }
  }

  public void open() {
    opened.countDown();
  }
}
