-- beta's rules: no submission from /home, no requeue.
function slurm_job_submit(job, partitions, uid)
  local folder = job.work_dir or ""
  if folder == "/home" or folder:sub(1, 6) == "/home/" then
    slurm.log_user("beta: jobs cannot be submitted from /home; change to $SCRATCH first")
    return slurm.ERROR
  end
  if job.requeue == 1 then
    slurm.log_user("beta: requeue is not allowed on this cluster")
    return slurm.ERROR
  end
  job.requeue = 0
  return slurm.SUCCESS
end

function slurm_job_modify(job, record, partitions, uid)
  if job.requeue == 1 then
    slurm.log_user("beta: requeue is not allowed on this cluster")
    return slurm.ERROR
  end
  return slurm.SUCCESS
end
