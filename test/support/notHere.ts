import { suite } from './suite.ts'

/** Skips the tests of a file that this machine cannot run. The run prints the reason and counts them as skipped. */
export const notHere = (name: string, reason: string): void => {
  process.stdout.write(`${name}: ${reason}\n`)
  const skipped = suite(name)
  skipped.skip()
  skipped.run()
}
