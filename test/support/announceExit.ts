import { closeSync } from 'node:fs'

/** The descriptor of the runner's pipe. Child processes do not inherit it. */
const RUNNER = 3

/** `node --import` this: closes the runner's pipe when nothing keeps the process any more. Removals of files follow. */
process.once('exit', () => closeSync(RUNNER))
