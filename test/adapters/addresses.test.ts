import * as assert from 'uvu/assert'
import { parseAddress as parseEventStoreDb } from '../../src/adapters/eventstoredb/address.ts'
import { parseAddress as parseMongo } from '../../src/adapters/mongodb/address.ts'
import { parseAddress as parseRedis } from '../../src/adapters/redis/address.ts'
import { parseAddress as parseS3 } from '../../src/adapters/s3/address.ts'
import { isAppError, messageOf } from '../../src/errors.ts'
import { suite } from '../support/suite.ts'

const refusal = (parse: (url: string) => unknown, url: string): string => {
  try {
    parse(url)
  } catch (error) {
    assert.ok(isAppError(error), messageOf(error))
    return error.message
  }
  throw new Error(`Expected ${url} to be refused`)
}

const addresses = suite('the URL of an engine that is not valid')

addresses('is reported with its setting, what is expected and the URL without secrets', () => {
  for (const [parse, url, problem] of [
    [
      parseEventStoreDb,
      'esdb://',
      'SVC_EVENT_STORE: expected esdb://host:2113?tls=false or embedded:; got esdb://',
    ],
    [
      parseEventStoreDb,
      'esdb://u:hidden@h?prefix=a/b',
      'a prefix of at most 64 letters, digits, `_`, `.` and `-`; got esdb://***@h?***',
    ],
    [
      parseEventStoreDb,
      'esdb://u:hidden%@h',
      'SVC_EVENT_STORE: expected user and password URI-encoded; got esdb://***@h',
    ],
    [parseEventStoreDb, 'esdb://hidden@h', 'expected <user>:<password>@ before the host, both URI-encoded'],
    [parseEventStoreDb, 'esdb://u:hid:den@h', 'expected <user>:<password>@ before the host, both'],
    [parseEventStoreDb, 'esdb://hid?den@h', 'SVC_EVENT_STORE: expected esdb://host:2113'],
    [
      parseEventStoreDb,
      'esdb://u:hidden@h:0',
      'each with a port from 1 to 65535 or with none; got esdb://***@h:0',
    ],
    [parseEventStoreDb, 'esdb://u:hidden@h?hid=den', 'expected no other options than prefix, connectionName'],
    [parseEventStoreDb, 'esdb://h?throwOnAppendFailure=false', 'expected no other options than prefix'],
    [parseMongo, 'mongodb://hid?den:pw@h', 'expected a URL that the MongoDB driver can parse'],
    [parseMongo, 'mongodb://u:1/x?hid@h', 'user and password URI-encoded; got mongodb://***@h'],
    [parseRedis, 'redis://hidden?hid@h', 'expected user and password URI-encoded; got redis://***@h'],
    [parseRedis, 'redis://h:0', 'SVC_REDIS: expected a port from 1 to 65535; got redis://h:0'],
    [parseS3, 's3://k:hidden@h:0/bucket', 'SVC_BLOBS: expected a port from 1 to 65535'],
    [parseMongo, 'mongodb://u:hid/den@h/db', 'user and password URI-encoded; got mongodb://***@h/db'],
    [
      parseMongo,
      'mongodb://u:hidden@h/a.b',
      'expected a valid database name after the host; got mongodb://***@h/a.b',
    ],
    [
      parseRedis,
      'redis://u:hidden@h:port',
      'SVC_REDIS: expected redis://host:6379/0; got redis://***@h:port',
    ],
    [
      parseRedis,
      'redis://u:hidden@h/db',
      'expected the number of a database after the host; got redis://***@h/db',
    ],
    [parseRedis, 'redis://u:hidden%@h', 'expected user and password URI-encoded; got redis://***@h'],
    [
      parseS3,
      's3://key:hidden@h',
      'expected a bucket: s3://<key>:<secret>@host:port/bucket?region=us-east-1; got s3://***@h',
    ],
    [parseS3, 's3://key@h/bucket', 'SVC_BLOBS: expected a key and a secret: s3://<key>:<secret>@'],
    [
      parseS3,
      's3://key:hidden@h/bucket?tls=no',
      'expected tls=true or tls=false, not tls=no; got s3://***@h/bucket?***',
    ],
    [parseS3, 's3://key:hidden%@h/bucket', 'expected key and secret URI-encoded; got s3://***@h/bucket'],
  ] as const) {
    const text = refusal(parse, url)
    assert.match(text, problem)
    assert.not.match(text, 'hid')
  }
})

addresses.run()
