package io.interlock.spark.statements

import org.apache.spark.sql.catalyst.parser.ParserInterface

/** Spark 4.0 binds parameters in the plan, after the parser. So Interlock's own statements take none. */
private[statements] trait BindingParser extends ParserInterface
