import { onOneLine } from '../logger.ts'
import { parseServiceUrl, readClientConfig } from '../process/clientConfig.ts'
import { connectClient, serviceErrorOf } from './author.ts'
import { command } from './command.ts'
import { urlHere } from './connection.ts'
import { writeProfile } from './profiles.ts'
import { WrongUsage } from './wrongUsage.ts'

const DEFAULT_PROFILE = 'default'

/** Parses the address of a service. */
export const urlIn = (text: string): string => {
  const url = parseServiceUrl(text)
  if (url !== undefined) return url
  throw new WrongUsage(
    `expected an http or https URL without a user name and a query, such as https://svc.example.com; got ${onOneLine(text.slice(0, 200))}`,
  )
}

const nameIn = (text: string): string => {
  if (/^[\w.-]{1,64}$/.test(text) && text !== '__proto__') return text
  throw new WrongUsage('expected a name of 1 to 64 letters, digits, dots, hyphens and underscores')
}

export const loginCommand = command({
  name: 'login',
  summary: 'store the address and the key of an environment as a profile',
  description:
    'Reads an API key from a prompt that does not show it, or from the standard input, checks it at the service, and stores ' +
    'it as a profile that only this user can read. The profile becomes the default one. Commands use it outside the ' +
    'folder of a running svc dev, unless SVC_URL or SVC_PROFILE is set.',
  arguments: {
    url: { description: 'the service (default: as other commands find it)', count: 'optional', parse: urlIn },
  },
  options: {
    profile: {
      value: 'NAME',
      description: `the name of the profile (default: ${DEFAULT_PROFILE})`,
      parse: nameIn,
    },
  },
  examples: [
    'svc login https://svc.example.com',
    'svc login https://svc.example.com --profile prod < key.txt',
    'svc runs --profile prod',
  ],
  async run({ args, options, secret, signal }) {
    const { profilesDir } = readClientConfig()
    const [url, name] = [args.url ?? urlHere(options.profile), options.profile ?? DEFAULT_PROFILE]
    const key = (await secret(`API key of ${url}: `)).trim()
    if (!/^[\x21-\x7e]+$/.test(key))
      throw new WrongUsage('standard input: expected an API key of letters, digits and signs without spaces')
    const connection = { url, key, what: 'API key', fix: 'nothing was stored', project: null }
    const env = await connectClient(connection, signal)
      .request('GET /v1/sign-in', { signal })
      .catch((error: unknown) => {
        throw serviceErrorOf(error, connection) ?? error
      })
    writeProfile(profilesDir, { name, url, key })
    const { env_id, env_name } = env
    const stored = { profile: name, url, env_id, env: env_name }
    return {
      json: stored,
      text: `${onOneLine(`Stored the profile ${name}: environment ${env_name ?? env_id} at ${url}`)}\n`,
    }
  },
})
