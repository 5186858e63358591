import { join } from 'node:path'
import { AppError, messageOf } from '../errors.ts'
import type { Logger } from '../logger.ts'
import { type ChildCode, prepareChildCode } from '../sandbox/childCode.ts'
import { type ChildUsers, openChildUsers } from '../sandbox/childUsers.ts'
import { chooseSandbox, type SandboxInfo } from '../sandbox/chooseSandbox.ts'
import { DEFAULT_OPTIONS, type SandboxOptions } from '../sandbox/limits.ts'
import { openCgroups } from './cgroups.ts'
import { isOpenToAll, nodeForAll, openChildCache } from './childCache.ts'
import type { Config } from './config.ts'
import { childRecorder } from './leftoverChildren.ts'

/** The start of children on this machine. */
export interface OpenedSandbox {
  readonly info: SandboxInfo
  readonly cacheDir: string
  readonly codeDir: string
  readonly options: Pick<SandboxOptions, 'node' | 'sandbox' | 'recordChild' | 'users'>
}

interface Given {
  readonly config: Config
  /** Where `npm ci` stored the code of the children; null: in the cache. */
  readonly codeDir: string | null
  readonly logger: Logger
  readonly onClose: (close: () => void) => void
  /** Ends the wait for a busy machine. */
  readonly signal?: AbortSignal
  /** Receives the reason why the start waits for the first child; null when that is over. */
  readonly waiting?: (reason: string | null) => void
  readonly openUsers?: () => Promise<ChildUsers>
}

/** A child may use this many times `rssMb`, at which it is replaced. */
const MEMORY_FACTOR = 1.5

/** Processes and threads of a child; Node starts about ten. */
const MAX_PROCESSES = 64

/** While the processor is busy, a child gets half the share of the service. */
const CPU_WEIGHT = 50

/** Records each child for the next service, and moves it into a cgroup of its own where this is possible. */
const recorderOf = ({ dataDir }: Config): ((pid: number) => () => void) => {
  const record = childRecorder(dataDir)
  const memoryMb = DEFAULT_OPTIONS.rssMb * MEMORY_FACTOR
  const cgroups = openCgroups({ memoryMb, processes: MAX_PROCESSES, cpuWeight: CPU_WEIGHT })
  return (pid) => {
    const forget = record(pid)
    const remove = cgroups?.add(pid)
    return () => {
      forget()
      remove?.()
    }
  }
}

type Place = Pick<OpenedSandbox, 'cacheDir' | 'codeDir'> & {
  readonly code: ChildCode
  readonly options: Omit<SandboxOptions, 'sandbox'>
}

/**
 * Chooses the tier of the sandbox by starting a child in it. If the service runs as root, children get users of their
 * own and a cache that they can enter. Rejects with `unavailable` when the configuration demands what does not work.
 */
export const openSandbox = async (given: Given): Promise<OpenedSandbox> => {
  const { config, logger } = given
  const isRoot = process.getuid?.() === 0
  const opened = isRoot ? await openWithUsers(given) : await openIn(given, ownPlace(given))
  if (typeof opened !== 'string') return opened
  if (!isRoot || (config.sandbox === 'namespace' && !config.allowRoot)) throw unavailable(config, opened)
  const problem = `The service runs as root, and its children cannot run as users of their own: ${opened}`
  if (!config.allowRoot)
    throw new AppError('unavailable', `${problem}. Run it as another user, or set SVC_ALLOW_ROOT=1`)
  logger.warn(problem)
  const asRoot = await openIn(given, ownPlace(given))
  if (typeof asRoot === 'string') throw unavailable(config, asRoot)
  return asRoot
}

const unavailable = ({ sandbox }: Config, reason: string): AppError =>
  new AppError(
    'unavailable',
    sandbox === 'namespace'
      ? `SVC_SANDBOX=namespace does not work here: ${reason}. ` +
          'Install bubblewrap and allow user namespaces, or set SVC_SANDBOX=process'
      : `No child process can be started: ${reason}`,
  )

const ownPlace = ({ config, codeDir }: Given): Place => {
  const cacheDir = join(config.dataDir, 'cache')
  return {
    cacheDir,
    codeDir: codeDir ?? cacheDir,
    code: prepareChildCode(codeDir ?? cacheDir),
    options: { ...DEFAULT_OPTIONS, recordChild: recorderOf(config) },
  }
}

/** Resolves with the reason if no child starts as a user of its own. */
const openWithUsers = async (given: Given): Promise<OpenedSandbox | string> => {
  let users: ChildUsers
  try {
    users = await (given.openUsers ?? openChildUsers)()
  } catch (error) {
    return messageOf(error)
  }
  const opened = await openIn(given, openPlace(given, users))
  if (typeof opened === 'string') users.close()
  else given.onClose(() => users.close())
  return opened
}

const openPlace = ({ config, codeDir }: Given, users: ChildUsers): Place => {
  const cacheDir = openChildCache(config.dataDir)
  const known = codeDir === null ? null : prepareChildCode(codeDir)
  const isOpen = known !== null && isOpenToAll(known.entry)
  return {
    cacheDir,
    codeDir: codeDir !== null && isOpen ? codeDir : cacheDir,
    code: isOpen ? known : prepareChildCode(cacheDir),
    options: {
      ...DEFAULT_OPTIONS,
      node: nodeForAll(DEFAULT_OPTIONS.node, cacheDir),
      users,
      recordChild: recorderOf(config),
    },
  }
}

const openIn = async (
  { config, signal, waiting = () => {}, logger }: Given,
  { cacheDir, codeDir, code, options }: Place,
): Promise<OpenedSandbox | string> => {
  let isWaiting = false
  const onSlow = (reason: string) => {
    isWaiting = true
    logger.warn(reason)
    waiting(reason)
  }
  const chosen = await chooseSandbox(config.sandbox, code, options, { ...(signal && { signal }), onSlow })
  if (isWaiting) waiting(null)
  if (typeof chosen === 'string') return chosen
  const { sandbox, tier, reason } = chosen
  const { node, users, recordChild } = options
  return {
    info: { tier, reason },
    cacheDir,
    codeDir,
    options: { node, sandbox, ...(recordChild && { recordChild }), ...(users && { users }) },
  }
}
