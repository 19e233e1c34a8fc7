package io.interlock.spark.properties

import io.interlock.spark.errors.InterlockException
import org.apache.spark.sql.delta.CatalogOwnedTableFeature

/** What orders the commits of a table in place of Interlock: its catalog, or a commit coordinator of
  * Delta's preview. Such a table can have no policy, since who asks one of two coordinators for the
  * table's versions would miss the commits of the other.
  */
object OtherCoordinator {
  private val CatalogManaged = CatalogOwnedTableFeature.name
  private val CatalogManagedKey = s"delta.feature.$CatalogManaged"
  private val Preview = "delta.coordinatedCommits.commitCoordinator-preview"

  /** Says in words what orders the commits; none if nothing but Interlock or Delta's log store does.
    *
    * @param properties
    *   the table's properties, with those that a statement sets
    */
  def of(properties: Map[String, String], features: Set[String]): Option[String] = {
    val isManaged = features.contains(CatalogManaged) ||
      properties.keys.exists(_.equalsIgnoreCase(CatalogManagedKey))
    if (isManaged) Some(s"its catalog (table feature $CatalogManaged)")
    else properties.get(Preview).map(name => s"the commit coordinator '$name' ($Preview)")
  }

  /** The same for a table with a coordinator of Interlock's; none for others. */
  def besideOurs(properties: Map[String, String], features: Set[String]): Option[String] =
    TablePolicy.coordinatorOf(properties).flatMap(_ => of(properties, features))

  /** @throws InterlockException
    *   INTERLOCK_OTHER_COORDINATOR for a table with a coordinator of Interlock's
    */
  def refuse(table: String, properties: Map[String, String], features: Set[String]): Unit =
    besideOurs(properties, features).foreach { other =>
      throw InterlockException("INTERLOCK_OTHER_COORDINATOR", "table" -> table, "other" -> other)
    }
}
