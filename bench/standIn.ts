import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

/** The event store of the environment variable, or else the stand-in of the tests in a separate process. */
export const openEventStoreServer = async (): Promise<{ what: string; url: string; stop: () => void }> => {
  const named = process.env['SVC_TEST_EVENT_STORE']
  if (named) return { what: 'EventStoreDB', url: named, stop: () => {} }
  const main = fileURLToPath(new URL('../test/support/eventstoredb/main.ts', import.meta.url))
  const child = spawn(process.execPath, [main], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [url] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  return { what: 'the stand-in', url, stop: () => child.kill('SIGTERM') }
}
