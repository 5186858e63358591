import { setTimeout as delay } from 'node:timers/promises'
import { counted } from '../text/counted.ts'
import type { MasterKeyStatus } from '../commands/installation/masterKeyStatus.ts'
import { type CliCommand, command } from './command.ts'
import { continuing } from './unanswered.ts'
import { textIn } from './values.ts'

const PATH = '/operator/secrets/rotate-master'
/** The interval at which the progress is read. */
const LOOK_MS = 500
const CONTINUES = 'the rotation continues then: see svc secrets status'

const keyIn = (file: string): string => textIn(file).trim()

const textOf = ({ status, ...key }: MasterKeyStatus): string =>
  status === 'rotating'
    ? `Rotating: ${counted(key.remaining, 'key')} left, ${key.rewrapped} done (since ${key.started_at})\n`
    : key.ended_at === null
      ? `The master key is ${key.master_key_id}; it was never replaced\n`
      : `Done: the master key ${key.master_key_id} replaced ${key.previous_master_key_id} at ${key.ended_at}; ` +
        `${counted(key.rewrapped, 'key')} encrypted again\n`

export const secretsCommands: readonly CliCommand[] = [
  command({
    group: 'secrets',
    name: 'rotate-master',
    summary: 'replace the master key while the service runs',
    description:
      'Replaces the master key and encrypts every data key again. API keys, sessions, webhook URLs and secrets remain ' +
      'valid. Without SVC_MASTER_KEY, the service generates the new key and stores it in secrets.json. With ' +
      'SVC_MASTER_KEY, first restart every node with the new key in SVC_MASTER_KEY and the former one in ' +
      'SVC_MASTER_KEY_PREVIOUS; after this command, remove SVC_MASTER_KEY_PREVIOUS. A repetition continues a rotation.',
    options: {
      'key-file': {
        value: 'FILE',
        description: 'use the key in this file (32 bytes as base64), not a random one',
        parse: keyIn,
      },
      'no-wait': { description: 'return when the rotation has begun' },
    },
    examples: [
      'svc secrets rotate-master',
      'openssl rand -base64 32 > new.key && svc secrets rotate-master --key-file new.key',
      'SVC_URL=https://svc.example.com SVC_OPERATOR_TOKEN=… svc secrets rotate-master --json',
    ],
    async run({ options, operator, progress, signal }) {
      const service = operator()
      const key = options['key-file']
      const body = key === undefined ? {} : { master_key: key }
      const bar = progress('keys')
      let status = await service.request<MasterKeyStatus>('POST', PATH, { body })
      while (status.status === 'rotating' && !options['no-wait']) {
        bar.report(status.rewrapped, status.rewrapped + status.remaining)
        await delay(LOOK_MS, undefined, { signal })
        status = await continuing(service.request<MasterKeyStatus>('GET', PATH), CONTINUES)
      }
      return { json: status, text: textOf(status) }
    },
  }),
  command({
    group: 'secrets',
    name: 'status',
    summary: 'show the master key in use and the progress of its rotation',
    description: 'Shows the id of the master key, and how many keys are still encrypted with the former one.',
    examples: ['svc secrets status', 'svc secrets status --json'],
    async run({ operator }) {
      const status = await operator().request<MasterKeyStatus>('GET', PATH)
      return { json: status, text: textOf(status) }
    },
  }),
  command({
    group: 'secrets',
    name: 'operator-token',
    summary: 'print the operator token that svc uses here',
    description:
      'Prints SVC_OPERATOR_TOKEN, else the token in secrets.json, else the one derived from SVC_MASTER_KEY. It does not ' +
      'connect to the service.',
    examples: ['curl $SVC_URL/operator/orgs -H "Authorization: Bearer $(svc secrets operator-token)"'],
    run({ operator }) {
      const { token } = operator()
      return Promise.resolve({ json: { operator_token: token }, text: `${token}\n` })
    },
  }),
]
