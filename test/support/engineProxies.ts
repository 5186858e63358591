import { type FaultProxy, openFaultProxy } from './faultProxy.ts'

/** The external engines, by the variable that names them, with their default ports. */
const PORTS = {
  SVC_EVENT_STORE: 2113,
  SVC_READ_MODELS: 27_017,
  SVC_REDIS: 6379,
  SVC_BLOBS: 9000,
} as const

export type EngineSetting = keyof typeof PORTS
export const engineSettings = Object.keys(PORTS) as EngineSetting[]

export type EngineProxies = Readonly<Partial<Record<EngineSetting, FaultProxy>>>

/** The first host of the URL of an engine. */
export const hostOf = (url: string, port: number): { host: string; port: number } => {
  const [, host = '', given] = /^\w[\w+]*:\/\/(?:[^@/]*@)?([^:/?]+)(?::(\d+))?/.exec(url) ?? []
  return { host, port: Number(given ?? port) }
}

/** Opens a proxy in front of each engine in `env`. The returned variables name the proxies. */
export const openEngineProxies = async (
  env: Readonly<Record<string, string>>,
): Promise<{ proxies: EngineProxies; env: Record<string, string> }> => {
  const proxies: Partial<Record<EngineSetting, FaultProxy>> = {}
  const proxied = { ...env }
  for (const setting of engineSettings) {
    const url = env[setting]
    if (url === undefined) continue
    const proxy = await openFaultProxy(hostOf(url, PORTS[setting]))
    proxies[setting] = proxy
    proxied[setting] = proxy.url(url)
  }
  return { proxies, env: proxied }
}
