package io.interlock.spark.procedures

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.{FunctionSignature, NamedParametersSupport}
import org.apache.spark.sql.internal.SQLConf

/** The arguments of a call, in the order of the parameters, with the defaults of those left out. */
private[procedures] object NamedArguments {
  def inOrder(
      signature: FunctionSignature,
      values: Seq[Expression],
      function: String
  ): Seq[Expression] =
    NamedParametersSupport.defaultRearrange(signature, values, function, SQLConf.get.resolver)
}
