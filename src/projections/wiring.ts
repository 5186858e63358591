import type { FunctionSpec } from '../events/project.ts'
import { hasParameters } from '../events/webhookPath.ts'
import type { DirectoryBuild, DirectoryProject } from './directoryProject.ts'
import { toolsByName } from './tools.ts'

/** A function of a deployed build, with the project and build to run it from. */
export interface Deployed {
  readonly project: DirectoryProject
  readonly build: DirectoryBuild
  readonly fn: FunctionSpec
}

/** The namespace and the name of the function that a reference `ns/var` means. */
export const partsOfRef = (ref: string): { readonly ns: string; readonly name: string } => {
  const slash = ref.lastIndexOf('/')
  return { ns: ref.slice(0, slash), name: ref.slice(slash + 1) }
}

/** The deployed functions of one environment, by their triggers. */
export interface Wiring {
  readonly handlers: ReadonlyMap<string, readonly Deployed[]>
  readonly webhooks: ReadonlyMap<string, Deployed>
  /** The webhooks with parameters in their path, by method and service. */
  readonly patterns: ReadonlyMap<string, readonly Deployed[]>
  /** The functions for clients of MCP, by the names of their tools. */
  readonly tools: ReadonlyMap<string, Deployed>
  /** The projects with a deployed build whose functions are not known. */
  readonly unreadable: readonly DirectoryProject[]
}

/** Returns the wiring of an environment with these projects. */
export const wiringOf = (projects: readonly DirectoryProject[]): Wiring => {
  const handlers = new Map<string, Deployed[]>()
  const webhooks = new Map<string, Deployed>()
  const patterns = new Map<string, Deployed[]>()
  const tools: Deployed[] = []
  for (const project of projects) {
    if (!project.deployed) continue
    for (const fn of project.deployed.functions) {
      const deployed = { project, build: project.deployed, fn }
      if (fn.on_event !== undefined) add(handlers, fn.on_event, deployed)
      if (fn.mcp) tools.push(deployed)
      if (!fn.webhook) continue
      const { method, service, path } = fn.webhook
      webhooks.set(webhookKey(fn.webhook), deployed)
      if (hasParameters(path)) add(patterns, `${method} ${service}`, deployed)
    }
  }
  const unreadable = projects.filter(({ deployed }) => deployed?.unreadable)
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
const add = (lists: Map<string, Deployed[]>, key: string, deployed: Deployed): void => {
  const known = lists.get(key)
  if (known) known.push(deployed)
  else lists.set(key, [deployed])
}

type Endpoint = Pick<NonNullable<FunctionSpec['webhook']>, 'method' | 'service' | 'path'>

/** The key of a webhook in `Wiring.webhooks`. */
export const webhookKey = ({ method, service, path }: Endpoint): string => `${method} ${service}${path}`
