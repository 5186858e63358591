import { join, sep } from 'node:path'
import { type Bundle, BundleFailed } from '../../bundle/bundle.ts'
import { type Bundler, openBundler } from '../../bundle/openBundler.ts'
import { readSettings, type Settings } from '../../bundle/settings.ts'
import { type Client, ServiceError } from '../../client/index.ts'
import { isTransient } from '../../client/transport.ts'
import { clock } from '../../clock.ts'
import type { Printed } from '../command.ts'
import { warningsOf } from '../bundleTexts.ts'
import type { Batch, Changes } from './changes.ts'
import { createProject } from '../deployBundle.ts'
import { warningsIn } from '../sourcePlaces.ts'
import { deployLive, type LiveBuild } from './deployLive.ts'
import { withPatience } from './patience.ts'
import { openSecrets } from './secrets.ts'
import { failedText, functionsText, liveText, secretsText, slowText, wrongSecretsText } from './texts.ts'

interface Given {
  readonly folder: string
  readonly client: Client
  readonly changes: Changes
  readonly signal: AbortSignal
  readonly print: (line: Printed) => Promise<void>
  /** Called with the name of the project before each deployment. */
  readonly announce: (project: string) => Promise<void>
  /** The folder with the data of the service; null for a service elsewhere. */
  readonly data: string | null
}

/** The state of the project in the service. */
export interface LiveProject {
  readonly name: string
  readonly live: LiveBuild | null
}

/** Files whose save an author waits for. Others, such as a log in the folder, change all the time. */
const SOURCE = /\.(?:[cm]?[jt]sx?|json)$|(?:^|[/\\])\.env[^/\\]*$/

/** Files of the folder itself that decide the build. */
const SETTINGS = /^(?:package\.json|tsconfig[^/\\]*\.json|\.env[^/\\]*)$/

/** In place of a failure, after an upload that took long. */
const SLOW = 'slow'

interface Opened {
  readonly settings: Settings
  readonly bundler: Bundler
  readonly secrets: ReturnType<typeof openSecrets>
}

/** A deployment that the service could not accept at the moment is repeated after this time, or later if the service asks for it. */
const AGAIN_MS = 2000

/** Saves whose deployment is repeated. */
interface Again extends Batch {
  readonly inMs: number
}

/**
 * Deploys the folder now and after every save.
 * D1: a save that cannot be bundled or deployed leaves the last good build live.
 * D2: a failure is reported unless a file of the project was saved meanwhile: editors write files in several steps.
 * D3: one deployment at a time; saves during one are deployed together after it.
 * D4: a failure is reported again only after the save of a source. A log of this output in the folder changes with it.
 * D5: a deployment that may succeed later, such as on a full disk, is repeated without another save.
 * D6: a save ends an upload that takes long, such as that of a module with an endless top-level await.
 * D7: a wrong file of context variables changes none of them, and is reported beside the code, which is deployed.
 */
export const openProject = ({ folder, client, changes, signal, print, announce, data }: Given) => {
  let opened: Opened | null = null
  let state: LiveProject = { name: '', live: null }
  /** The failure that was reported last; null after a deployment. */
  let failure: string | null = null
  /** What was wrong with the file of the context variables at the last deployment; null if nothing was. */
  let wrongSecrets: string | null = null
  let modules: readonly string[] = []
  let again: Again | null = null

  const open = async (settings: Settings): Promise<Opened> => {
    const { secrets: _, ...decisive } = settings
    const { secrets: __, ...before } = opened?.settings ?? { secrets: null }
    if (opened && JSON.stringify(decisive) === JSON.stringify(before)) return { ...opened, settings }
    await opened?.bundler.close()
    opened = null
    const { project } = settings
    if (project !== state.name) {
      await createProject(client, project, {})
      state = { name: project, live: null }
    }
    return { settings, bundler: await openBundler(settings), secrets: openSecrets(client, project) }
  }

  const deploy = async ({ paths, sinceMs }: Batch): Promise<void> => {
    opened = await open(readSettings(folder))
    const { settings, bundler } = opened
    await announce(settings.project)
    const wrong = await synchronize(opened)
    const bundle = await bundler.rebuild().catch((error: unknown) => {
      throw wrong && error instanceof BundleFailed
        ? new BundleFailed([...wrong.messages, ...error.messages])
        : error
    })
    modules = bundle.modules
    await makeLive(bundle, { paths, sinceMs })
    await reportSecrets(wrong, paths)
  }

  /** Writes the context variables. Returns what is wrong with their file (D7). */
  const synchronize = async ({ settings, secrets }: Opened): Promise<BundleFailed | null> => {
    try {
      const { set, removed } = await secrets(settings)
      if (set.length + removed.length > 0) await print(secretsText(set, removed))
      return null
    } catch (error) {
      if (error instanceof BundleFailed) return error
      throw error
    }
  }

  /** D4 */
  const reportSecrets = async (wrong: BundleFailed | null, paths: readonly string[]): Promise<void> => {
    const isKnown = wrong?.message === wrongSecrets
    wrongSecrets = wrong?.message ?? null
    if (wrong && (!isKnown || paths.some((path) => SOURCE.test(path))))
      await print(wrongSecretsText(wrong, state.live?.build_id ?? null))
  }

  const makeLive = async (bundle: Bundle, { paths, sinceMs }: Batch): Promise<void> => {
    const { name, live } = state
    if (live?.sha256 === bundle.sha256 && failure === null) return
    const next =
      live?.sha256 === bundle.sha256
        ? unchanged(live)
        : await withPatience({ changes, isNewer, slow }, (given) => deployLive(client, name, bundle, given))
    state = { name, live: next }
    failure = null
    const saved = savedOf(paths, changes.pending())
    await print(
      liveText(withWarnings(next, bundle, folder), {
        paths: saved,
        ms: Math.round(clock.monotonic() - sinceMs),
      }),
    )
    if (live !== null) return
    const { data } = await client.request('GET /v1/projects/{project}/webhooks', {
      path: { project: name },
      query: { limit: 100 },
    })
    await print(functionsText(name, next.functions, data))
  }

  /** Whether files may change the build. After a failure any file may: an import is missing. */
  const mayMatter = ({ paths }: Batch): boolean => {
    if (failure !== null || !opened) return true
    const { settings, bundler } = opened
    const known = new Set(bundler.watched())
    const isIn = (path: string): boolean => settings.src === '.' || path.startsWith(settings.src + sep)
    return paths.some((path) => isIn(path) || SETTINGS.test(path) || known.has(join(settings.folder, path)))
  }

  /** D6. A file that changes all the time replaces nothing. */
  const isNewer = (paths: readonly string[]): boolean => {
    const sources = paths.filter((path) => SOURCE.test(path))
    return sources.length > 0 && mayMatter({ paths: sources, sinceMs: 0 })
  }

  /** The next build is printed, also if it is the live one. */
  const slow = async (): Promise<void> => {
    failure ??= SLOW
    await print(slowText())
  }

  const update = async (batch: Batch, { isRepeated = false } = {}): Promise<void> => {
    if (!mayMatter(batch)) return
    const saved = again ? together(again, batch) : batch
    again = null
    try {
      await deploy(saved)
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof ServiceError && isTransient(error))
        again = { ...saved, inMs: Math.max(AGAIN_MS, (error.retryAfter ?? 0) * 1000) } // D5
      if (isNewer(changes.pending())) return // D2
      const live = state.live?.build_id ?? null
      const failed = failedText(error, { folder, modules, live, data, againMs: again && again.inMs })
      const isKnown = JSON.stringify(failed.json) === failure
      failure = JSON.stringify(failed.json)
      const isSaved = !isRepeated && batch.paths.some((path) => SOURCE.test(path))
      if (!isKnown || isSaved) await print(failed) // D1, D4
    }
  }

  return {
    state: (): LiveProject => state,
    /** Runs until the signal aborts, and then rejects. */
    async follow(): Promise<never> {
      await update({ paths: [], sinceMs: clock.monotonic() })
      for (;;) {
        const saved = await changes.next(again && again.inMs) // D3
        if (saved) await update(saved)
        else if (again) await update(again, { isRepeated: true })
      }
    },
    close: async (): Promise<void> => opened?.bundler.close(),
  }
}

const together = (first: Batch, second: Batch): Batch => ({
  paths: [...new Set([...first.paths, ...second.paths])].sort(),
  sinceMs: first.sinceMs,
})

/** The sources of a batch. A log may change first, and the source be reported while its build is made. */
const savedOf = (paths: readonly string[], later: readonly string[]): readonly string[] => {
  const sources = [paths, later].map((each) => each.filter((path) => SOURCE.test(path)))
  return sources.find(({ length }) => length > 0) ?? paths
}

/** The warnings about the sources come before those of the service. */
const withWarnings = (live: LiveBuild, bundle: Bundle, folder: string): LiveBuild => ({
  ...live,
  warnings: [...warningsOf(bundle), ...warningsIn(live.warnings, { folder, modules: bundle.modules })],
})

/** A build that is live already: the saved files are again as they were. */
const unchanged = (live: LiveBuild): LiveBuild => ({
  ...live,
  changes: { added: [], removed: [], changed: [] },
})
