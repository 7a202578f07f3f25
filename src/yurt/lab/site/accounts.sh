# alpha's accounting: one account, its people, an operator, a QOS that takes few jobs.
# May be run again after having been cut off: what is there already is not added twice.
sacctmgr -i add cluster alpha
sacctmgr -i add account lab Description=lab Organization=lab
sacctmgr -i add qos few MaxSubmitJobsPerUser=4
sacctmgr -i add user alice,bob,carol,oper Account=lab
sacctmgr -i modify user alice,bob,carol,oper set qos=normal,few defaultqos=normal
sacctmgr -i modify user oper set adminlevel=Operator
sacctmgr -nP list user oper withassoc format=adminlevel,qos | grep -q 'Operator|.*few'
