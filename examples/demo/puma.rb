# frozen_string_literal: true

threads 8, 8
quiet
# Without its reactor, which needs the C extension of nio4r.
queue_requests false
