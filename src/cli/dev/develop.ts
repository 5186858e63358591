import { createClient } from '../../client/index.ts'
import type { Printed } from '../command.ts'
import { watchFolder } from './changes.ts'
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
  readonly onProject: (project: string) => void
  /** Rejects when the service has ended. */
  readonly ended: Promise<never>
}

/** Deploys a folder after every save and prints its runs, until it is stopped or the service ends. Then it rejects. */
export const develop = async (given: Given): Promise<never> => {
  const { folder, url, key, stopped, print, ready, onProject, ended } = given
  const failed = new AbortController()
  const signal = AbortSignal.any([stopped, failed.signal])
  const client = createClient({
    url,
    token: key,
    fetch: (target, init) =>
      fetch(target, { ...init, signal: init?.signal ? AbortSignal.any([signal, init.signal]) : signal }),
  })
  const from = await endOfActivity(client)
  await print(ready())
  const changes = watchFolder(folder, signal)
  const project = openProject({ folder, client, changes, signal, print, onProject })
  const tail = async (): Promise<never> => {
    for await (const run of tailRuns(client, () => project.state().name, { from, signal })) {
      const fn = project.state().live?.functions.find((each) => each.fn === run.run.fn)
      await print(runText(run, 1 + (fn?.retry?.attempts ?? 0)))
    }
    throw new Error('Expected the activity of an environment to have no end')
  }
  const tasks = [project.follow(), tail()]
  try {
    return await Promise.race([...tasks, ended])
  } finally {
    failed.abort()
    await Promise.allSettled(tasks)
    await project.close()
  }
}
