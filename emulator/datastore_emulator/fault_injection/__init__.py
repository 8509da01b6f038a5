"""Fault injection: plans that refuse, delay or drop calls, or kill the process.

Other rooms call `fault_plans.point` where a plan may inject a fault; users install a
`fault_plans.Plan`. `fault_rules` reads the JSON document of a plan.

The same seed and the same calls produce the same faults, in any process and with any number of
threads.
"""
