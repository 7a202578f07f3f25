# alpha's accounting: one account, its users, an operator, a QOS with a limit of four jobs per user.
# Can be run again after an interruption: existing entries are not added twice.
sacctmgr -i add cluster alpha
sacctmgr -i add account lab Description=lab Organization=lab
sacctmgr -i add qos few MaxSubmitJobsPerUser=4
sacctmgr -i add user alice,bob,carol,oper Account=lab
sacctmgr -i modify user alice,bob,carol,oper set qos=normal,few defaultqos=normal
sacctmgr -i modify user oper set adminlevel=Operator
sacctmgr -nP list user oper withassoc format=adminlevel,qos | grep -q 'Operator|.*few'
