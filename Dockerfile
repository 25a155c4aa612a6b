# The package with the CPU build of torch. For a GPU, leave out the index of the first RUN.
FROM python:3.11-slim

COPY . /vitcapr
RUN pip install --no-cache-dir --index-url https://download.pytorch.org/whl/cpu \
      "torch==$(sed -n 's/^torch==//p' /vitcapr/constraints.txt)" \
 && pip install --no-cache-dir --constraint /vitcapr/constraints.txt /vitcapr \
 && rm -rf /vitcapr

WORKDIR /study
CMD ["vitcapr", "--help"]
