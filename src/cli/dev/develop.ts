import { once } from 'node:events'
import { createClient } from '../../client/index.ts'
import { messageOf } from '../../errors.ts'
import { onOneLine } from '../../logger.ts'
import type { Printed } from '../command.ts'
import type { Colour, Paint } from '../terminal.ts'
import { watchFolder } from './changes.ts'
import { type Keyboard, readKeys } from './keys.ts'
import { openProject } from './project.ts'
import { endOfActivity, tailRuns } from './tail.ts'
import { runText } from './texts.ts'

interface Given {
  readonly folder: string
  readonly url: string
  readonly key: string
  readonly stopped: AbortSignal
  readonly print: (line: Printed) => Promise<void>
  /** The line that says what can be reached. */
  readonly ready: () => Printed
  readonly announce: (project: string) => Promise<void>
  /** The folder with the data of the service; null for a service elsewhere. */
  readonly data: string | null
  readonly paint: Paint
  /** Rejects when the service has ended; null for a service elsewhere. */
  readonly ended: Promise<never> | null
  /** Null without a terminal. */
  readonly keyboard: Keyboard | null
}

/**
 * Deploys a folder after every save and prints its runs, until it is stopped or the service ends. Then it rejects;
 * it resolves when a key has stopped it.
 */
export const develop = async (given: Given): Promise<void> => {
  const { folder, url, key, stopped, paint, ready, announce, data, ended, keyboard } = given
  const print = (line: Printed): Promise<void> => given.print(coloured(line, paint))
  const failed = new AbortController()
  const signal = AbortSignal.any([stopped, failed.signal])
  const client = createClient({
    url,
    token: key,
    retries: 1, // a deployment is repeated by itself, and its failure should be printed soon
    fetch: (target, init) =>
      fetch(target, { ...init, signal: init?.signal ? AbortSignal.any([signal, init.signal]) : signal }),
  })
  const from = await endOfActivity(client)
  await print(ready())
  const changes = watchFolder(folder, signal)
  const project = openProject({ folder, client, changes, signal, print, announce, data })
  let failedRun: string | null = null
  const tail = async (): Promise<never> => {
    for await (const run of tailRuns(client, () => project.state().name, { from, signal })) {
      if (run.run.status === 'failed') failedRun = run.run.run_id
      const fn = project.state().live?.functions.find((each) => each.fn === run.run.fn)
      await print(runText(run, fn))
    }
    throw new Error('Expected the activity of an environment to have no end')
  }
  const quit = new AbortController()
  const stop = () => quit.abort()
  const replay = () => {
    if (failedRun !== null)
      client.runs.replay(failedRun).catch((error: unknown) => void print(notDone(error)))
  }
  const clear = () => void process.stdout.write('\x1b[2J\x1b[3J\x1b[H')
  const release = keyboard ? readKeys(keyboard, { r: replay, c: clear, q: stop, '\x03': stop }) : null
  const tasks = [project.follow(), tail()]
  try {
    await Promise.race([...tasks, ...(ended ? [ended] : []), ...(keyboard ? [aborted(quit.signal)] : [])])
  } finally {
    release?.()
    failed.abort()
    await Promise.allSettled(tasks)
    await project.close()
  }
}

const aborted = async (signal: AbortSignal): Promise<void> => void (await once(signal, 'abort'))

const notDone = (error: unknown): Printed => ({
  json: { type: 'replay', error: messageOf(error) },
  text: `${onOneLine(`the run was not replayed: ${messageOf(error)}`)}\n`,
})

const COLOURS: Readonly<Record<string, Colour>> = {
  live: 'green',
  succeeded: 'green',
  failed: 'red',
  pending_retry: 'yellow',
}

/** Colours the first line of a message by what happened. */
const coloured = ({ json, text }: Printed, paint: Paint): Printed => {
  const { type, status } = json as { readonly type: string; readonly status?: string }
  const colour = COLOURS[status ?? type]
  if (colour === undefined) return { json, text }
  const end = text.indexOf('\n')
  return { json, text: paint(colour, text.slice(0, end)) + text.slice(end) }
}
