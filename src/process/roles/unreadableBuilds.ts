import { repeat } from '../../loops/repeat.ts'
import type { Node } from './node.ts'

/** Pauses between looks, milliseconds. */
const LOOK_MS = 5000

/** The builds that `/readyz` names. The log names all of them. */
const NAMED = 10

export interface UnreadableBuildsWatch {
  /** The fields of `/readyz`. */
  readonly details: () => object
  readonly count: () => number
}

/**
 * Watches the builds whose lists of functions are damaged or missing. Logs each of them once per process, and reads them
 * again until an operator has restored them or their projects have other builds.
 */
export const watchUnreadableBuilds = ({
  views: { directory },
  logger,
  ...background
}: Node): UnreadableBuildsWatch => {
  const logged = new Set<string>()
  const look = async (): Promise<void> => {
    await directory.repair()
    for (const { project_id, build } of directory.unreadable()) {
      const { build_id, unreadable } = build
      if (logged.has(build_id)) continue
      logged.add(build_id)
      logger.error(
        'The functions of a build cannot be read, so nothing starts them; restore the file from a backup, or deploy another build',
        { project_id, build_id, blob: unreadable.ref.key, error: unreadable.reason },
      )
    }
  }
  void repeat('The watch over unreadable builds', look, { ...background, logger, everyMs: LOOK_MS })
  const found = () => [...directory.unreadable()]
  const details = (): object => {
    const builds = found().map(({ project_id, build }) => ({
      project_id,
      build_id: build.build_id,
      error: build.unreadable.reason,
    }))
    return builds.length === 0 ? {} : { damaged_builds: builds.slice(0, NAMED) }
  }
  return { details, count: () => found().length }
}
