import { closeSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

/** The descriptor of the runner's pipe. Child processes do not inherit it. */
const RUNNER = 3

/** Threads and children of the process inherit the option `--import`, and have no such pipe. */
const isOfRunner = isMainThread && process.ppid === Number(process.env['SVC_TEST_RUNNER_PID'])

/** `node --import` this: closes the runner's pipe when nothing keeps the process any more. Removals of files follow. */
if (isOfRunner) process.once('exit', () => closeSync(RUNNER))
