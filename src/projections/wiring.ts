import type { FunctionSpec } from '../events/project.ts'
import { hasParameters } from '../events/webhookPath.ts'
import type { DirectoryBuild, DirectoryProject } from './directoryProject.ts'
import { toolsByName } from './tools.ts'

/** A function of a deployed build, as its triggers need it. */
export interface Wired {
  readonly project: Pick<DirectoryProject, 'project_id' | 'env_id' | 'name'>
  readonly build: DirectoryBuild
  readonly fn: FunctionSpec
}

/** The same with the whole project, as it is now. */
export interface Deployed extends Wired {
  readonly project: DirectoryProject
}

/** The namespace and the name of the function that a reference `ns/var` means. */
export const partsOfRef = (ref: string): { readonly ns: string; readonly name: string } => {
  const slash = ref.lastIndexOf('/')
  return { ns: ref.slice(0, slash), name: ref.slice(slash + 1) }
}

/** The deployed functions of one environment, by their triggers. */
export interface Wiring {
  readonly handlers: ReadonlyMap<string, readonly Wired[]>
  readonly webhooks: ReadonlyMap<string, Wired>
  /** The webhooks with parameters in their path, by method and service. */
  readonly patterns: ReadonlyMap<string, readonly Wired[]>
  /** The functions for clients of MCP, by the names of their tools. */
  readonly tools: ReadonlyMap<string, Wired>
  /** The projects with a deployed build whose functions are not known. */
  readonly unreadable: readonly UnreadableProject[]
}

type UnreadableProject = Pick<DirectoryProject, 'project_id' | 'name' | 'deployed'>

/** Returns whether a change of a project leaves the wiring of its environment as it is; null: it does not exist. */
export const isWiredAs = (before: DirectoryProject | null, after: DirectoryProject | null): boolean =>
  (before?.deployed ?? null) === (after?.deployed ?? null) &&
  (!before?.deployed || before.name === after?.name)

/** Returns the wiring of an environment with these projects. */
export const wiringOf = (projects: readonly DirectoryProject[]): Wiring => {
  const handlers = new Map<string, Wired[]>()
  const webhooks = new Map<string, Wired>()
  const patterns = new Map<string, Wired[]>()
  const tools: Wired[] = []
  for (const { project_id, env_id, name, deployed: build } of projects) {
    if (!build) continue
    const project = { project_id, env_id, name }
    for (const fn of build.functions) {
      const deployed = { project, build, fn }
      if (fn.on_event !== undefined) add(handlers, fn.on_event, deployed)
      if (fn.mcp) tools.push(deployed)
      if (!fn.webhook) continue
      const { method, service, path } = fn.webhook
      webhooks.set(webhookKey(fn.webhook), deployed)
      if (hasParameters(path)) add(patterns, `${method} ${service}`, deployed)
    }
  }
  const unreadable = projects
    .filter(({ deployed }) => deployed?.unreadable)
    .map(({ project_id, name, deployed }) => ({ project_id, name, deployed }))
  let named: Wiring['tools'] | undefined
  return {
    handlers,
    webhooks,
    patterns,
    unreadable,
    /** Sorted when a client of MCP asks, because events and webhooks need no names. */
    get tools() {
      return (named ??= toolsByName(tools))
    },
  }
}

/** A list is extended in place: an environment may have 50,000 functions with one key. */
const add = (lists: Map<string, Wired[]>, key: string, deployed: Wired): void => {
  const known = lists.get(key)
  if (known) known.push(deployed)
  else lists.set(key, [deployed])
}

type Endpoint = Pick<NonNullable<FunctionSpec['webhook']>, 'method' | 'service' | 'path'>

/** The key of a webhook in `Wiring.webhooks`. */
export const webhookKey = ({ method, service, path }: Endpoint): string => `${method} ${service}${path}`
