import { clock } from '../../clock.ts'
import type { Runtime } from '../../ports/runtime.ts'
import type { CommandDeps } from '../deps.ts'

/** An unpacked build that is neither deployed nor live stays for this time after its last use. */
const IDLE_MS = 3600_000

/**
 * Removes unpacked builds of this node that no project has any more, and those that no project deploys and that were not
 * used lately. A removed build is unpacked again when it is needed. Resolves with the number of removed builds, and of those that runs still use.
 */
export const forgetBuilds = async ({
  views,
  runtime,
}: {
  readonly views: Pick<CommandDeps['views'], 'builds' | 'directory' | 'settled'>
  readonly runtime: Pick<Runtime, 'forgetUnneeded'>
}): Promise<{ removed: number; left: number }> => {
  await views.settled('builds')
  const current = new Set<string>()
  for (const { deployed, live } of views.directory.projects())
    for (const build of [deployed, live]) if (build) current.add(build.hash)
  return runtime.forgetUnneeded(async ({ hash, usedAt }) => {
    if (current.has(hash)) return true
    if (clock.now() - usedAt > IDLE_MS) return false
    const { items } = await views.builds.find({
      equal: { hash },
      sort: 'order',
      limit: 1,
      offset: 0,
      totals: false,
    })
    return items.length > 0
  })
}
